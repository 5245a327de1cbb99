/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters with a range.  Values outside are rejected when the module is
 * loaded, and at each write: the log tells the valid range.
 */
#ifndef _SOVIA_PARAM_H
#define _SOVIA_PARAM_H

#include <linux/moduleparam.h>

/* Maximum of parameters in seconds: a day. */
#define SOVIA_PARAM_SECONDS_MAX	86400

/**
 * struct sovia_param - a parameter
 * @value: the variable
 * @min: smallest valid value
 * @max: largest valid value
 */
struct sovia_param {
	unsigned int	*value;
	unsigned int	min;
	unsigned int	max;
};

/* Like module_param_named() of an unsigned int. */
#define sovia_param(name, variable, least, most, perm)				\
	static struct sovia_param sovia_param_##name = {			\
		.value = &(variable), .min = (least), .max = (most),		\
	};									\
	module_param_cb(name, &sovia_param_ops, &sovia_param_##name, perm);	\
	MODULE_INFO(parmtype, #name ":uint")

extern const struct kernel_param_ops sovia_param_ops;

#endif /* _SOVIA_PARAM_H */
