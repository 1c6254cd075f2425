/* SPDX-License-Identifier: Apache-2.0 */
/* print-init - a C program that says what `flexdriver init` says, and does nothing else. */
#include <stdio.h>

int main(void)
{
        return puts("{\"status\":\"Success\",\"capabilities\":{\"attach\":true,\"selinuxRelabel\":true,"
                    "\"supportsMetrics\":true,\"fsGroup\":true,\"requiresFSResize\":true}}") < 0;
}
