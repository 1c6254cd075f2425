/* SPDX-License-Identifier: Apache-2.0 */
#include "container/device_bpf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/syscalls.h"

#define PROGRAMS_MAX 64
#define INSTRUCTIONS_MAX 4096 /* the runtimes' programs have less than 100 */
#define GRANT_LENGTH 10
#define ATTEMPTS_MAX 16

struct bpf_program {
        struct bpf_insn instructions[INSTRUCTIONS_MAX + GRANT_LENGTH];
        uint32_t count;
};

#define LOAD(reg, at)                                                                                                  \
        {                                                                                                              \
                .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (reg), .src_reg = BPF_REG_1, .off = (at)                 \
        }
#define JUMP_IF_NOT(reg, value, to)                                                                                    \
        {                                                                                                              \
                .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (reg), .off = (to), .imm = (value)                       \
        }
#define SET(reg, value)                                                                                                \
        {                                                                                                              \
                .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (reg), .imm = (value)                                  \
        }
#define AND(reg, value)                                                                                                \
        {                                                                                                              \
                .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = (reg), .imm = (value)                                  \
        }

/*
 * The context's first word is access << 16 | type; major and minor follow. r1 keeps it for the original program, which
 * decides about the accesses in "denied", always including mknod.
 */
static void make_grant(struct bpf_insn *ret_instructions, int32_t denied, int32_t major_number, int32_t minor_number)
{
        const struct bpf_insn grant[GRANT_LENGTH] = {
                LOAD(BPF_REG_2, 0),
                AND(BPF_REG_2, denied << 16 | 0xffff),
                JUMP_IF_NOT(BPF_REG_2, BPF_DEVCG_DEV_BLOCK, 6),
                LOAD(BPF_REG_2, 4),
                JUMP_IF_NOT(BPF_REG_2, major_number, 4),
                LOAD(BPF_REG_2, 8),
                JUMP_IF_NOT(BPF_REG_2, minor_number, 2),
                SET(BPF_REG_0, 1),
                { .code = BPF_JMP | BPF_EXIT },
                SET(BPF_REG_2, 0x666c6578), /* a mark: the original program follows */
        };

        (void)memcpy(ret_instructions, grant, sizeof grant);
}

static bool is_grant(const struct bpf_insn *at, uint64_t device, bool any_device)
{
        struct bpf_insn expected[GRANT_LENGTH];

        make_grant(expected, at[1].imm >> 16, any_device ? at[4].imm : (int32_t)major(device),
                   any_device ? at[6].imm : (int32_t)minor(device));
        return memcmp(at, expected, sizeof expected) == 0;
}

/* The index of the device's grant among those at the start, or UINT32_MAX. */
static uint32_t find_grant(const struct bpf_program *program, uint64_t device)
{
        for (uint32_t at = 0; at + GRANT_LENGTH <= program->count &&
                              is_grant(program->instructions + at, device, /* any_device= */ true);
             at += GRANT_LENGTH)
                if (is_grant(program->instructions + at, device, /* any_device= */ false))
                        return at;
        return UINT32_MAX;
}

/* Whether a dump can be loaded with the same meaning: not with calls, maps and blinded constants. */
static bool is_self_contained(const struct bpf_program *program)
{
        for (uint32_t i = 0; i < program->count; i++) {
                const struct bpf_insn *instruction = &program->instructions[i];

                if (instruction->code == (BPF_JMP | BPF_CALL) || instruction->code == (BPF_LD | BPF_IMM | BPF_DW) ||
                    instruction->dst_reg > BPF_REG_10 || instruction->src_reg > BPF_REG_10)
                        return false;
        }
        return program->count > 0;
}

static int dump(int program_fd, struct bpf_program *ret_program)
{
        struct bpf_prog_info info = { .xlated_prog_insns = (uint64_t)(uintptr_t)ret_program->instructions,
                                      .xlated_prog_len = INSTRUCTIONS_MAX * sizeof(struct bpf_insn) };
        union bpf_attr attr = {
                .info = { .bpf_fd = (uint32_t)program_fd, .info_len = sizeof info, .info = (uint64_t)(uintptr_t)&info }
        };

        if (sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0)
                return -errno;
        /* 0: the kernel hides the instructions; a longer program is cut by the kernel */
        ret_program->count = info.xlated_prog_insns == 0 ? 0 : info.xlated_prog_len / (uint32_t)sizeof(struct bpf_insn);
        return ret_program->count > INSTRUCTIONS_MAX ? -EOPNOTSUPP : 0;
}

static int load(const struct bpf_program *program)
{
        union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
                                .insns = (uint64_t)(uintptr_t)program->instructions,
                                .insn_cnt = program->count,
                                .license = (uint64_t)(uintptr_t) "GPL",
                                .prog_name = "flexgraft" };
        int fd = sys_bpf(BPF_PROG_LOAD, &attr);

        return fd < 0 ? -errno : fd;
}

/* Replace a program. If the group may have several, the old one is named, so that no concurrent change is lost. */
static int replace(int group_fd, uint32_t flags, int old_fd, int new_fd)
{
        union bpf_attr attr = { .target_fd = (uint32_t)group_fd,
                                .attach_bpf_fd = (uint32_t)new_fd,
                                .attach_type = BPF_CGROUP_DEVICE,
                                .attach_flags = flags };

        if ((flags & BPF_F_ALLOW_MULTI) != 0) {
                attr.attach_flags |= BPF_F_REPLACE;
                attr.replace_bpf_fd = (uint32_t)old_fd;
        }
        return sys_bpf(BPF_PROG_ATTACH, &attr) < 0 ? -errno : 0;
}

/* The accesses that a grant leaves to the original program. */
static int32_t denied_by_grant(unsigned access)
{
        return BPF_DEVCG_ACC_MKNOD | ((access & DEVICE_READ) != 0 ? 0 : BPF_DEVCG_ACC_READ) |
               ((access & DEVICE_WRITE) != 0 ? 0 : BPF_DEVCG_ACC_WRITE);
}

/* A device can be opened for reading, for writing, or for both: check each. */
static bool denies(const struct bpf_program *program, uint64_t device, unsigned access)
{
        static const struct {
                unsigned needs;
                uint32_t asked;
        } ways[] = {
                { DEVICE_READ, BPF_DEVCG_ACC_READ },
                { DEVICE_WRITE, BPF_DEVCG_ACC_WRITE },
                { DEVICE_READ | DEVICE_WRITE, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE },
        };

        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
                if ((ways[i].needs & access) == ways[i].needs &&
                    bpf_machine_run(program->instructions, program->count, ways[i].asked, device) != 1)
                        return true;
        return false;
}

/* Add, replace or remove the grant; false: nothing to change. */
static bool change(struct bpf_program *program, uint64_t device, unsigned access)
{
        uint32_t at = find_grant(program, device);

        if (at != UINT32_MAX) {
                if (access != DEVICE_NONE && program->instructions[at + 1].imm >> 16 == denied_by_grant(access))
                        return false;
                (void)memmove(program->instructions + at, program->instructions + at + GRANT_LENGTH,
                              (program->count - at - GRANT_LENGTH) * sizeof(struct bpf_insn));
                program->count -= GRANT_LENGTH;
                if (access == DEVICE_NONE)
                        return true;
        } else if (access == DEVICE_NONE || !denies(program, device, access))
                return false;
        (void)memmove(program->instructions + GRANT_LENGTH, program->instructions,
                      program->count * sizeof(struct bpf_insn));
        make_grant(program->instructions, denied_by_grant(access), (int32_t)major(device), (int32_t)minor(device));
        program->count += GRANT_LENGTH;
        return true;
}

static int open_program(uint32_t id, struct bpf_program *ret_program)
{
        union bpf_attr attr = { .prog_id = id };
        cleanup_close int fd = sys_bpf(BPF_PROG_GET_FD_BY_ID, &attr);
        int r = fd < 0 ? -errno : dump(fd, ret_program);

        return r < 0 ? r : fd_take(&fd);
}

/* Change one program of the group: 1 changed, 0 nothing to change, or negative errno. */
static int change_one(int group_fd, uint32_t flags, uint32_t id, uint64_t device, unsigned access)
{
        static struct bpf_program program;
        cleanup_close int old_fd = open_program(id, &program);
        cleanup_close int new_fd = -EBADF;
        int r;

        if (old_fd < 0)
                return old_fd;
        if (program.count > 0 && !change(&program, device, access))
                return 0;
        if (!is_self_contained(&program))
                return access != DEVICE_NONE ? -EOPNOTSUPP : 0; /* it cannot have a grant */
        new_fd = load(&program);
        if (new_fd < 0)
                return new_fd;
        r = replace(group_fd, flags, old_fd, new_fd);
        return r < 0 ? r : 1;
}

static int query(int group_fd, uint32_t *ret_ids, uint32_t *ret_count, uint32_t *ret_flags)
{
        union bpf_attr attr = { .query = { .target_fd = (uint32_t)group_fd,
                                           .attach_type = BPF_CGROUP_DEVICE,
                                           .prog_ids = (uint64_t)(uintptr_t)ret_ids,
                                           .prog_cnt = PROGRAMS_MAX } };

        if (sys_bpf(BPF_PROG_QUERY, &attr) < 0)
                return errno == EINVAL || errno == ENOSYS ? 0 : -errno; /* a kernel without such programs */
        *ret_count = attr.query.prog_cnt;
        *ret_flags = attr.query.attach_flags;
        return 0;
}

int device_bpf_denies(int group_fd, const char *group, uint64_t device, unsigned access, bool *ret_denies,
                      struct error *error)
{
        static struct bpf_program program;
        uint32_t ids[PROGRAMS_MAX] = {};
        uint32_t count = 0;
        uint32_t flags;
        int r = query(group_fd, ids, &count, &flags);

        *ret_denies = false;
        for (uint32_t i = 0; r >= 0 && i < count; i++) {
                cleanup_close int fd = open_program(ids[i], &program);

                if (fd < 0 && fd != -ENOENT) /* ENOENT: it was just replaced */
                        r = fd == -EOPNOTSUPP ? 0 : fd;
                *ret_denies = *ret_denies || fd == -EOPNOTSUPP || (fd >= 0 && denies(&program, device, access));
        }
        return r < 0 ? fail(error, -r, "bpf", group) : 0;
}

int device_bpf_grant(int group_fd, const char *group, uint64_t device, unsigned access, struct error *error)
{
        int r = -EBUSY;

        /* repeated when a program was replaced meanwhile */
        for (int attempt = 0; attempt < ATTEMPTS_MAX && (r == -EBUSY || r == -ENOENT); attempt++) {
                uint32_t ids[PROGRAMS_MAX] = {};
                uint32_t count = 0;
                uint32_t flags = 0;

                r = query(group_fd, ids, &count, &flags);
                for (uint32_t i = 0; r >= 0 && i < count; i++)
                        r = change_one(group_fd, flags, ids[i], device, access);
        }
        if (r == -EOPNOTSUPP || r == -ENOENT || r == -EACCES || r == -EINVAL)
                return fail_because(error, EOPNOTSUPP, OPERATION_ALLOW_DEVICE, group,
                                    "the device program of the control group cannot be extended");
        return r < 0 ? fail(error, -r, "bpf", group) : 0;
}
