/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

#define CELL_MAX (PATH_MAX + 256)

/* In characters: of UTF-8 all bytes but those that go on with one. */
static size_t width_of(const char *text)
{
        size_t width = 0;

        for (; *text != '\0'; text++)
                width += ((unsigned char)*text & 0xc0) != 0x80;
        return width;
}

int table_say(const char *const *heads, size_t columns, size_t rows, table_cell *cell, const void *argument)
{
        static char text[CELL_MAX];
        static char padded[2 * CELL_MAX];
        size_t widths[TABLE_COLUMNS_MAX];
        int r = 0;

        assert(columns <= TABLE_COLUMNS_MAX);
        for (size_t column = 0; column < columns; column++) {
                widths[column] = strlen(heads[column]);
                for (size_t row = 0; row < rows; row++) {
                        cell(argument, row, column, text, sizeof text);
                        text_escape(text, sizeof text);
                        if (width_of(text) > widths[column])
                                widths[column] = width_of(text);
                }
        }
        for (size_t line = 0; r == 0 && line <= rows; line++)
                for (size_t column = 0; r == 0 && column < columns; column++) {
                        bool last = column == columns - 1;

                        if (line == 0)
                                (void)snprintf(text, sizeof text, "%s", heads[column]);
                        else
                                cell(argument, line - 1, column, text, sizeof text);
                        text_escape(text, sizeof text);
                        (void)snprintf(padded, sizeof padded, "%s%*s", text,
                                       last ? 1 : (int)(widths[column] - width_of(text)) + 2, last ? "\n" : "");
                        r = file_write_all(STDOUT_FILENO, padded, strlen(padded));
                }
        return r;
}
