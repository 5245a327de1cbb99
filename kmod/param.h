/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters that have to be in a range.  What is not is refused when the module
 * is loaded, and at each write: the log says what there may be.
 */
#ifndef _SOVIA_PARAM_H
#define _SOVIA_PARAM_H

#include <linux/moduleparam.h>

/* A day, for those that are seconds: none waits longer for anything. */
#define SOVIA_PARAM_SECONDS_MAX	86400

/**
 * struct sovia_param - a parameter
 * @value: the variable
 * @min: the least that it may be
 * @max: the most
 */
struct sovia_param {
	unsigned int	*value;
	unsigned int	min;
	unsigned int	max;
};

/* As module_param_named() of an unsigned int. */
#define sovia_param(name, variable, least, most, perm)				\
	static struct sovia_param sovia_param_##name = {			\
		.value = &(variable), .min = (least), .max = (most),		\
	};									\
	module_param_cb(name, &sovia_param_ops, &sovia_param_##name, perm);	\
	MODULE_INFO(parmtype, #name ":uint")

extern const struct kernel_param_ops sovia_param_ops;

#endif /* _SOVIA_PARAM_H */
