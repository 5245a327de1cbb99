// SPDX-License-Identifier: GPL-2.0-only
/* Module parameters with a range. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/sysfs.h>
#include "param.h"

static int param_set(const char *text, const struct kernel_param *kp)
{
	const struct sovia_param *param = kp->arg;
	unsigned int value;
	int err;

	err = kstrtouint(text, 0, &value);
	if (!err && (value < param->min || value > param->max))
		err = -ERANGE;
	if (err) {
		pr_err("%s must be %u to %u\n", kp->name, param->min, param->max);
		return -EINVAL;
	}
	WRITE_ONCE(*param->value, value);
	return 0;
}

static int param_get(char *buffer, const struct kernel_param *kp)
{
	const struct sovia_param *param = kp->arg;

	return sysfs_emit(buffer, "%u\n", READ_ONCE(*param->value));
}

const struct kernel_param_ops sovia_param_ops = {
	.set	= param_set,
	.get	= param_get,
};
