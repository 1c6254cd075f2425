/* SPDX-License-Identifier: Apache-2.0 */
/* A device program of a control group, as the kernel gives it: other people's instructions, interpreted to know what they allow. */
#include "fuzz.h"

#include <linux/bpf.h>
#include <sys/sysmacros.h>

#include "container/device_bpf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct bpf_insn program[4096];
        uint32_t count = (uint32_t)(size / sizeof program[0]);
        int r;

        if (count == 0 || count > sizeof program / sizeof program[0])
                return 0;
        memcpy(program, data, count * sizeof program[0]);
        r = bpf_machine_run(program, count, BPF_DEVCG_ACC_READ, makedev(7, 3));
        fuzz_check(r >= -1 && r <= 1);
        return 0;
}
