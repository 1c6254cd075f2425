/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/reply_schema.h"

#define ALL ~0U

static const char *const states[] = { "present", "covered", "gone", "wanted", "unknown", NULL };
static const char *const device_states[] = { "present", "replaced", "gone", NULL };

static const struct key container_keys[] = {
        { "pid", ALL, ALL, KEY_COUNT, .help = "its first process" },
        { "id", ALL, 0, KEY_ANY, .help = "the id it is known by" },
};
static const struct key_table container = KEY_TABLE(container_keys);

static const struct key from_keys[] = {
        { "container", ALL, ALL, KEY_OBJECT, .members = &container, .help = "whose source it is" },
        { "path", ALL, ALL, KEY_ANY, .help = "the source, as that container sees it" },
};
static const struct key_table from = KEY_TABLE(from_keys);

static const struct key nfs_keys[] = {
        { "version", ALL, ALL, KEY_ANY, .help = "the protocol's version that was agreed upon" },
        { "address", ALL, ALL, KEY_ANY, .help = "the server's address" },
};
static const struct key_table nfs = KEY_TABLE(nfs_keys);

static const struct key replaced_keys[] = {
        { "atomic", ALL, ALL, KEY_BOOLEAN, .help = "whether there was no moment without a mount" },
        { "volume", ALL, 0, KEY_ANY, .help = "name of the volume that was there" },
};
static const struct key_table replaced = KEY_TABLE(replaced_keys);

static const struct key remap_keys[] = {
        { "pid", ALL, ALL, KEY_COUNT, .help = "the remap daemon's process" },
        { "running", ALL, ALL, KEY_BOOLEAN, .help = "whether it runs" },
};
static const struct key_table remap = KEY_TABLE(remap_keys);

static const char *const how_words[] = { "file", "cwd", "root", "mapped", NULL };

static const struct key open_keys[] = {
        { "volume", ALL, ALL, KEY_ANY, .help = "of which it has files open" },
        { "pid", ALL, ALL, KEY_COUNT, .help = "the process, as the node counts" },
        { "command", ALL, ALL, KEY_ANY, .help = "as it calls itself" },
        { "how", ALL, ALL, KEY_ARRAY, .words = how_words,
          .help = "an open file, the working directory, the root directory, a mapped file" },
};
static const struct key_table open = KEY_TABLE(open_keys);

#define ONE (REPLIES_MOUNT | REPLIES_SWITCH)
#define SWITCHES (REPLIES_SWITCH | REPLIES_BATCH)
#define MADE (ONE | REPLIES_BATCH)

static const struct key mount_keys[] = {
        { "id", ALL, ALL, KEY_ANY, .help = "the record's name, for mount-remove" },
        { "container", ALL, ALL, KEY_OBJECT, .members = &container, .help = "the container it is in" },
        { "type", ALL, ALL, KEY_ANY, .help = "bind, raw, nfs, tmpfs, overlay, or the filesystem's type" },
        { "source", ALL, ALL, KEY_ANY, .help = "as it was asked for" },
        { "target", ALL, ALL, KEY_ANY, .help = "where it is, as the container sees it" },
        { "options", ALL, ALL, KEY_ARRAY, .help = "of the mount and of the filesystem" },
        { "idMapping", ALL, ALL, KEY_ANY, .help = "how owners are made right: none, idmapped, userns, remap or host" },
        { "mountId", ALL, ALL, KEY_COUNT, .help = "the kernel's number of the mount" },
        { "from", ALL, 0, KEY_OBJECT, .members = &from, .help = "where the source is, if in another container" },
        { "nfs", ALL, 0, KEY_OBJECT, .members = &nfs, .help = "what was agreed with the server" },
        { "origin", MADE, 0, KEY_ANY, .help = "what the source turned out to be" },
        { "alreadyMounted", MADE, MADE, KEY_BOOLEAN, .help = "whether the same request was done before" },
        { "replaced", MADE, 0, KEY_OBJECT, .members = &replaced, .help = "that it took the place of another" },
        { "stillOpen", SWITCHES, 0, KEY_ARRAY, .members = &open,
          .help = "processes that have files of a volume open which this one replaced; it stays in use" },
        { "stillOpenMore", SWITCHES, 0, KEY_BOOLEAN,
          .help = "true: there are more, or not all were looked at in time" },
        { "stillAttached", SWITCHES, 0, KEY_ANY, .help = "a replaced volume that could not be detached" },
        { "hint", SWITCHES, 0, KEY_ANY, .help = "why it stays attached" },
        { "state", REPLIES_LIST, REPLIES_LIST, KEY_WORD, .words = states,
          .help = "what the kernel says; covered: by another mount, or moved away; wanted: it is not there, and comes "
                  "when the container starts again; unknown: it could not be asked" },
        { "wanted", REPLIES_LIST, REPLIES_LIST, KEY_BOOLEAN,
          .help = "whether it is wanted whenever the container runs: \"persist\"" },
        { "device", REPLIES_LIST, 0, KEY_WORD, .words = device_states,
          .help = "of a block device: whether its number is still the disk that was mounted" },
        { "stillReachable", REPLIES_LIST, 0, KEY_BOOLEAN,
          .help = "true: it was removed or replaced, but a process may still have its raw device or files open" },
        { "remap", REPLIES_LIST, 0, KEY_OBJECT, .members = &remap,
          .help = "the daemon that serves \"ids\": \"remap\"" },
        { "problem", REPLIES_LIST, 0, KEY_ANY, .help = "why the kernel could not be asked" },
};
static const struct key_table mount = KEY_TABLE(mount_keys);

static const struct key mounted_keys[] = {
        { "status", MADE, MADE, KEY_WORD, .words = schema_success, .help = "it is mounted" },
        { "mount", ONE, ONE, KEY_OBJECT, .members = &mount, .help = "what was mounted" },
        { "mounts", REPLIES_BATCH, REPLIES_BATCH, KEY_ARRAY, .members = &mount,
          .help = "what was mounted, in the order of the request" },
};
static const struct key_table mounted = KEY_TABLE(mounted_keys);

static const struct key removed_mount_keys[] = {
        { "id", ALL, 0, KEY_ANY, .help = "the record's name" },
        { "target", ALL, 0, KEY_ANY, .help = "where it was" },
        { "container", ALL, 0, KEY_OBJECT, .members = &container, .help = "the container it was in" },
};
static const struct key_table removed_mount = KEY_TABLE(removed_mount_keys);

static const struct key removed_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = schema_success, .help = "it is not mounted any more" },
        { "removed", ALL, ALL, KEY_OBJECT, .members = &removed_mount, .help = "what was removed" },
        { "alreadyRemoved", ALL, ALL, KEY_BOOLEAN, .help = "whether it was gone before" },
        { "stillReachable", ALL, 0, KEY_BOOLEAN,
          .help = "true: a process still has the raw device open, or uses the volume" },
        { "hint", ALL, 0, KEY_ANY, .help = "what that means" },
};
static const struct key_table removed = KEY_TABLE(removed_keys);

static const struct key listed_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = schema_success, .help = "the records were read" },
        { "mounts", ALL, ALL, KEY_ARRAY, .members = &mount, .help = "what flexgraft mounted" },
        { "setAside", ALL, 0, KEY_ARRAY, .help = "records that cannot be understood, and were renamed" },
        { "unreadable", ALL, 0, KEY_ARRAY, .help = "records that cannot be read" },
};
static const struct key_table listed = KEY_TABLE(listed_keys);

static const struct key step_keys[] = {
        { "ensure", ALL, ALL, KEY_ANY, .help = "what must hold" },
        { "undo", ALL, 0, KEY_ANY, .help = "how it is undone when a later step fails" },
};
static const struct key_table step = KEY_TABLE(step_keys);

static const struct key planned_mount_keys[] = {
        { "target", ALL, ALL, KEY_ANY, .help = "where it would be, as the container sees it" },
        { "alreadyMounted", ALL, ALL, KEY_BOOLEAN, .help = "whether the same request was done before" },
        { "plan", ALL, ALL, KEY_ARRAY, .members = &step, .help = "the steps, in order" },
};
static const struct key_table planned_mount = KEY_TABLE(planned_mount_keys);

static const struct key planned_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = schema_success, .help = "the request could be carried out so far" },
        { "dryRun", ALL, ALL, KEY_BOOLEAN, .help = "true" },
        { "alreadyMounted", ONE, ONE, KEY_BOOLEAN, .help = "whether the same request was done before" },
        { "alreadyRemoved", REPLIES_REMOVE, REPLIES_REMOVE, KEY_BOOLEAN, .help = "whether it is gone" },
        { "plan", ONE | REPLIES_REMOVE, ONE | REPLIES_REMOVE, KEY_ARRAY, .members = &step,
          .help = "the steps, in order" },
        { "mounts", REPLIES_BATCH, REPLIES_BATCH, KEY_ARRAY, .members = &planned_mount,
          .help = "a plan for each entry, in the order of the request" },
};
static const struct key_table planned = KEY_TABLE(planned_keys);

const struct schema_form inject_reply_forms[] = {
        { "mounted", MADE, &mounted },       { "removed", REPLIES_REMOVE, &removed },
        { "listed", REPLIES_LIST, &listed }, { "planned", MADE | REPLIES_REMOVE, &planned },
        { "failed", ALL, &schema_failure },  {},
};
