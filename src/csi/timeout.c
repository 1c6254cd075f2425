/* SPDX-License-Identifier: Apache-2.0 */
#include "timeout.h"

#define DIGITS_MAX 8

static const struct {
        char unit;
        int64_t multiply, divide; /* into milliseconds */
} units[] = {
        { 'H', 3600000, 1 }, { 'M', 60000, 1 }, { 'S', 1000, 1 }, { 'm', 1, 1 }, { 'u', 1, 1000 }, { 'n', 1, 1000000 },
};

bool timeout_read(const char *text, size_t length, int64_t *ret_ms)
{
        int64_t number = 0;

        if (length < 2 || length > DIGITS_MAX + 1)
                return false;
        for (size_t i = 0; i + 1 < length; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return false;
                number = number * 10 + (text[i] - '0');
        }
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
                if (units[i].unit == text[length - 1]) {
                        *ret_ms = (number * units[i].multiply + units[i].divide - 1) / units[i].divide;
                        return true;
                }
        return false;
}
