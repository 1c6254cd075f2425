/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-program - what a container's runtime does to the devices of a control group of version 2.
 *
 *   device-program attach CGROUP [--single] [b|c:MAJOR:MINOR]...
 *   device-program show CGROUP
 *
 * attach: from now on the processes of the directory CGROUP may use the devices named (MINOR -1: all of MAJOR), and no
 * others. Several programs
 * may be attached to one group (BPF_F_ALLOW_MULTI, as crun and runc do it), unless --single says otherwise.
 * show: one line for each program attached to CGROUP itself, the first one first: its instructions, in hexadecimal.
 * Exit status 1 when the kernel refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROGRAMS_MAX = 64, INSTRUCTIONS_MAX = 4096, DEVICES_MAX = 64 };

static int call(enum bpf_cmd command, union bpf_attr *attr, const char *what)
{
        int r = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

        if (r < 0) {
                fprintf(stderr, "device-program: %s: %s\n", what, strerror(errno));
                exit(1);
        }
        return r;
}

static struct bpf_insn load(int reg, int offset)
{
        return (struct bpf_insn){
                .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = reg, .src_reg = BPF_REG_1, .off = offset
        };
}

static struct bpf_insn skip_unless(int reg, int value, int count)
{
        return (struct bpf_insn){ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = reg, .off = count, .imm = value };
}

static struct bpf_insn set(int reg, int value)
{
        return (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = reg, .imm = value };
}

static struct bpf_insn leave(void)
{
        return (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
}

/* r2: the type, r4: the major and r5: the minor number, as runtimes have them; the answer is r0. */
static unsigned make_program(struct bpf_insn *out, char **devices)
{
        unsigned n = 0;

        out[n++] = load(BPF_REG_2, 0);
        out[n++] = (struct bpf_insn){ .code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 0xffff };
        out[n++] = load(BPF_REG_4, 4);
        out[n++] = load(BPF_REG_5, 8);
        for (; *devices; devices++) {
                char type;
                int major, minor;

                if (sscanf(*devices, "%c:%d:%d", &type, &major, &minor) != 3 || (type != 'b' && type != 'c')) {
                        fprintf(stderr, "device-program: not a device: %s\n", *devices);
                        exit(125);
                }
                out[n++] = skip_unless(BPF_REG_2, type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR,
                                       minor < 0 ? 3 : 4);
                out[n++] = skip_unless(BPF_REG_4, major, minor < 0 ? 2 : 3);
                if (minor >= 0)
                        out[n++] = skip_unless(BPF_REG_5, minor, 2);
                out[n++] = set(BPF_REG_0, 1);
                out[n++] = leave();
        }
        out[n++] = set(BPF_REG_0, 0);
        out[n++] = leave();
        return n;
}

static void attach(int group, unsigned flags, char **devices)
{
        static struct bpf_insn program[5 * DEVICES_MAX + 6];
        union bpf_attr make = {
                .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
                .insns = (uint64_t)(uintptr_t)program,
                .insn_cnt = make_program(program, devices),
                .license = (uint64_t)(uintptr_t) "GPL",
        };
        union bpf_attr put = {
                .target_fd = (uint32_t)group,
                .attach_bpf_fd = (uint32_t)call(BPF_PROG_LOAD, &make, "BPF_PROG_LOAD"),
                .attach_type = BPF_CGROUP_DEVICE,
                .attach_flags = flags,
        };

        call(BPF_PROG_ATTACH, &put, "BPF_PROG_ATTACH");
}

static void show_program(uint32_t id)
{
        static uint64_t instructions[INSTRUCTIONS_MAX];
        union bpf_attr find = { .prog_id = id };
        struct bpf_prog_info info = {
                .xlated_prog_insns = (uint64_t)(uintptr_t)instructions,
                .xlated_prog_len = sizeof(instructions),
        };
        union bpf_attr ask = {
                .info = {
                        .bpf_fd = (uint32_t)call(BPF_PROG_GET_FD_BY_ID, &find, "BPF_PROG_GET_FD_BY_ID"),
                        .info_len = sizeof(info),
                        .info = (uint64_t)(uintptr_t)&info,
                },
        };

        call(BPF_OBJ_GET_INFO_BY_FD, &ask, "BPF_OBJ_GET_INFO_BY_FD");
        for (size_t i = 0; i < info.xlated_prog_len / sizeof(*instructions) && i < INSTRUCTIONS_MAX; i++)
                printf("%s%016llx", i > 0 ? " " : "", (unsigned long long)instructions[i]);
        printf("\n");
        close((int)ask.info.bpf_fd);
}

static void show(int group)
{
        uint32_t ids[PROGRAMS_MAX];
        union bpf_attr ask = {
                .query = {
                        .target_fd = (uint32_t)group,
                        .attach_type = BPF_CGROUP_DEVICE,
                        .prog_ids = (uint64_t)(uintptr_t)ids,
                        .prog_cnt = PROGRAMS_MAX,
                },
        };

        call(BPF_PROG_QUERY, &ask, "BPF_PROG_QUERY");
        for (uint32_t i = 0; i < ask.query.prog_cnt; i++)
                show_program(ids[i]);
}

int main(int argc, char **argv)
{
        if (argc < 3 || argc > DEVICES_MAX) {
                fprintf(stderr, "usage: device-program attach CGROUP [--single] [b|c:MAJOR:MINOR]...\n"
                                "       device-program show CGROUP\n");
                return 125;
        }
        int group = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (group < 0) {
                fprintf(stderr, "device-program: %s: %s\n", argv[2], strerror(errno));
                return 1;
        }
        if (strcmp(argv[1], "show") == 0)
                show(group);
        else if (argc > 3 && strcmp(argv[3], "--single") == 0)
                attach(group, 0, argv + 4);
        else
                attach(group, BPF_F_ALLOW_MULTI, argv + 3);
        return 0;
}
