/* SPDX-License-Identifier: Apache-2.0 */
#include "container/device_bpf.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/sysmacros.h>

#define STEPS_MAX 4096

/* The registers hold numbers, or pointers to the context (r1, and copies of it). */
struct machine {
        uint64_t registers[BPF_REG_10 + 1];
        bool is_context[BPF_REG_10 + 1];
        uint32_t context[3]; /* access << 16 | type, major, minor */
};

static bool load_context(struct machine *machine, const struct bpf_insn *instruction)
{
        uint64_t value = 0;
        size_t size = BPF_SIZE(instruction->code) == BPF_W   ? 4
                      : BPF_SIZE(instruction->code) == BPF_H ? 2
                      : BPF_SIZE(instruction->code) == BPF_B ? 1
                                                             : 0;

        if (!machine->is_context[instruction->src_reg] || size == 0 || instruction->off < 0 ||
            (size_t)instruction->off + size > sizeof machine->context || BPF_MODE(instruction->code) != BPF_MEM)
                return false;
        (void)memcpy(&value, (const char *)machine->context + instruction->off, size); /* little-endian machines */
        machine->registers[instruction->dst_reg] = value;
        machine->is_context[instruction->dst_reg] = false;
        return true;
}

static bool calculate(struct machine *machine, const struct bpf_insn *instruction)
{
        bool wide = BPF_CLASS(instruction->code) == BPF_ALU64;
        bool by_register = BPF_SRC(instruction->code) == BPF_X;
        uint64_t operand = by_register ? machine->registers[instruction->src_reg] : (uint64_t)(int64_t)instruction->imm;
        uint64_t value = machine->registers[instruction->dst_reg];
        unsigned shift_mask = wide ? 63 : 31;

        if (!wide) {
                value = (uint32_t)value;
                operand = (uint32_t)operand;
        }
        machine->is_context[instruction->dst_reg] = BPF_OP(instruction->code) == BPF_MOV && wide && by_register &&
                                                    instruction->off == 0 && machine->is_context[instruction->src_reg];
        switch (BPF_OP(instruction->code)) {
        case BPF_MOV:
                value = operand;
                break;
        case BPF_AND:
                value &= operand;
                break;
        case BPF_OR:
                value |= operand;
                break;
        case BPF_XOR:
                value ^= operand;
                break;
        case BPF_ADD:
                value += operand;
                break;
        case BPF_SUB:
                value -= operand;
                break;
        case BPF_RSH:
                value >>= operand & shift_mask;
                break;
        case BPF_LSH:
                value <<= operand & shift_mask;
                break;
        default:
                return false;
        }
        machine->registers[instruction->dst_reg] = wide ? value : (uint32_t)value;
        return true;
}

/* 1: it jumps, 0: it does not, -1: unknown instruction. */
static int jumps(const struct machine *machine, const struct bpf_insn *instruction)
{
        bool wide = BPF_CLASS(instruction->code) == BPF_JMP;
        uint64_t a = machine->registers[instruction->dst_reg];
        uint64_t b = BPF_SRC(instruction->code) == BPF_X ? machine->registers[instruction->src_reg]
                                                         : (uint64_t)(int64_t)instruction->imm;

        if (!wide) {
                a = (uint32_t)a;
                b = (uint32_t)b;
        }
        switch (BPF_OP(instruction->code)) {
        case BPF_JA:
                return wide ? 1 : -1;
        case BPF_JEQ:
                return a == b;
        case BPF_JNE:
                return a != b;
        case BPF_JGT:
                return a > b;
        case BPF_JGE:
                return a >= b;
        case BPF_JLT:
                return a < b;
        case BPF_JLE:
                return a <= b;
        case BPF_JSET:
                return (a & b) != 0;
        default:
                return -1;
        }
}

int bpf_machine_run(const struct bpf_insn *program, uint32_t count, uint32_t access, uint64_t device)
{
        struct machine machine = { .is_context = { [BPF_REG_1] = true },
                                   .context = { access << 16 | BPF_DEVCG_DEV_BLOCK, major(device), minor(device) } };
        int64_t next = 0;

        for (uint32_t steps = 0; steps < STEPS_MAX && next >= 0 && next < (int64_t)count; steps++) {
                const struct bpf_insn *instruction = &program[next++];
                bool understood = false;
                int jump;

                if (instruction->dst_reg > BPF_REG_10 || instruction->src_reg > BPF_REG_10)
                        return -1;
                switch (BPF_CLASS(instruction->code)) {
                case BPF_LDX:
                        understood = load_context(&machine, instruction);
                        break;
                case BPF_ALU:
                case BPF_ALU64:
                        understood = calculate(&machine, instruction);
                        break;
                case BPF_JMP:
                case BPF_JMP32:
                        if (instruction->code == (BPF_JMP | BPF_EXIT))
                                return (int)(machine.registers[BPF_REG_0] & 1);
                        jump = jumps(&machine, instruction);
                        understood = jump >= 0;
                        next += jump > 0 ? instruction->off : 0;
                        break;
                default:
                        break;
                }
                if (!understood)
                        return -1;
        }
        return -1;
}
