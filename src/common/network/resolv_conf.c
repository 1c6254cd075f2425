/* SPDX-License-Identifier: Apache-2.0 */
#include "network/resolv_conf.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* The next word of a line, or NULL at its end or at a comment. Cuts the line up. */
static char *next_word(char **line)
{
        char *word = *line + strspn(*line, " \t\r");

        if (*word == '\0' || *word == '#' || *word == ';')
                return NULL;
        *line = word + strcspn(word, " \t\r#");
        if (**line == '#')
                **line = '\0';
        else if (**line != '\0')
                *(*line)++ = '\0';
        return word;
}

static char *next_line(char **text)
{
        char *line = *text;

        if (*line == '\0')
                return NULL;
        *text = line + strcspn(line, "\n");
        if (**text != '\0')
                *(*text)++ = '\0';
        return line;
}

void resolv_conf_hosts(char *text, const char *host, uint16_t port, struct address_list *list)
{
        char *line;

        while ((line = next_line(&text)) != NULL) {
                const char *literal = next_word(&line);
                const char *name;
                union address address;

                while (literal != NULL && (name = next_word(&line)) != NULL)
                        if (strcasecmp(name, host) == 0) {
                                if (address_parse(literal, port, &address))
                                        address_add(list, &address);
                                break;
                        }
        }
}

static int bounded(const char *text, int maximum)
{
        uint64_t number;

        return text_number(text, (uint64_t)maximum, &number) ? (int)number : maximum;
}

static void read_options(struct resolv_conf *conf, char *line)
{
        const char *word;

        while ((word = next_word(&line)) != NULL)
                if (text_starts(word, "ndots:"))
                        conf->ndots = bounded(word + 6, 15);
                else if (text_starts(word, "timeout:"))
                        conf->timeout_ms = 1000 * bounded(word + 8, 30);
                else if (text_starts(word, "attempts:"))
                        conf->tries = bounded(word + 9, 5);
}

void resolv_conf_parse(char *text, struct resolv_conf *ret_conf)
{
        char *line;

        *ret_conf = (struct resolv_conf){ .ndots = 1, .timeout_ms = 5000, .tries = 2 };
        while ((line = next_line(&text)) != NULL) {
                const char *key = next_word(&line);
                char *word;

                if (key == NULL)
                        continue;
                if (strcmp(key, "nameserver") == 0 && (word = next_word(&line)) != NULL) {
                        union address address;
                        size_t length = strlen(ret_conf->servers);

                        /* c-ares knows no interfaces by number, and by name asks in a way that is not allowed here */
                        if (ret_conf->server_count < RESOLV_CONF_SERVERS_MAX && strlen(word) < ADDRESS_SIZE &&
                            strchr(word, '%') == NULL && address_parse(word, 53, &address)) {
                                (void)snprintf(ret_conf->servers + length, sizeof ret_conf->servers - length, "%s%s",
                                               length > 0 ? "," : "", word);
                                ret_conf->server_count++;
                        }
                } else if (strcmp(key, "search") == 0 || strcmp(key, "domain") == 0) {
                        ret_conf->domain_count = 0; /* the last line counts */
                        while (ret_conf->domain_count < RESOLV_CONF_DOMAINS_MAX && (word = next_word(&line)) != NULL)
                                ret_conf->domains[ret_conf->domain_count++] = word;
                } else if (strcmp(key, "options") == 0)
                        read_options(ret_conf, line);
        }
        if (ret_conf->server_count == 0)
                (void)text_copy(ret_conf->servers, sizeof ret_conf->servers, "127.0.0.1"); /* as the C library */
        if (ret_conf->timeout_ms == 0)
                ret_conf->timeout_ms = 1000;
        if (ret_conf->tries == 0)
                ret_conf->tries = 1;
}
