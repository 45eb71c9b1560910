/**
 * Definition of a setting: its path in `errand.yaml`, its environment variable, its schema and its default. The table of
 * settings (settings.ts) drives the file, the environment and the reference.
 */

import * as z from 'zod'
import { withoutEnd } from '../domain/trim.ts'

export interface Setting {
  /** Path in the file, for example `limits.runningPerProject`. */
  readonly path: string
  /** Environment variable, for example `ERRAND_LIMITS_RUNNING_PER_PROJECT`. */
  readonly env: string
  /** Describes valid values; follows "must be" in messages. */
  readonly must: string
  readonly schema: z.ZodType
  /** Converts the variable's text to the value that the file would hold. Throws if it cannot be parsed. */
  readonly fromText: (text: string) => unknown
  readonly fallback: unknown
  readonly doc: string
  /** Whether messages must not show the value. */
  readonly secret: boolean
  /** Whether the value is a path. Relative paths are resolved against their source: the file's directory or the current one. */
  readonly isPath: boolean
  /** Pattern of values that are kept as they are if no such file exists, such as names of images. */
  readonly orElse: RegExp | undefined
}

interface Common {
  readonly doc: string
  /** Environment variable, if its name does not follow from the path. */
  readonly env?: string
}

/** `limits.runningPerProject` → `ERRAND_LIMITS_RUNNING_PER_PROJECT`; `memoryMiB` → `MEMORY_MIB`. */
function envName(path: string): string {
  const words = path.replaceAll('MiB', 'Mib').replace(/([a-z0-9])([A-Z])/g, '$1_$2')
  return `ERRAND_${words.replaceAll('.', '_').toUpperCase()}`
}

function setting(
  path: string,
  common: Common,
  rest: Pick<Setting, 'must' | 'schema'> &
    Partial<Pick<Setting, 'fromText' | 'fallback' | 'secret' | 'isPath' | 'orElse'>>,
): Setting {
  return {
    path,
    env: common.env ?? envName(path),
    doc: common.doc,
    fromText: (text) => text,
    fallback: undefined,
    secret: false,
    isPath: false,
    orElse: undefined,
    ...rest,
  }
}

interface Bounds extends Common {
  readonly min: number
  readonly max?: number
  readonly fallback?: number
}

export function whole(path: string, bounds: Bounds): Setting {
  return number(path, bounds, 'a whole number', z.int())
}

export function fraction(path: string, bounds: Bounds): Setting {
  return number(path, bounds, 'a number', z.number())
}

function number(path: string, bounds: Bounds, noun: string, base: z.ZodNumber): Setting {
  const { min, max } = bounds
  return setting(path, bounds, {
    must: max === undefined ? `${noun} of at least ${min}` : `${noun} from ${min} to ${max}`,
    schema: max === undefined ? base.min(min) : base.min(min).max(max),
    // Text that is not a number stays text, so that the message can show it. Number(' ') would be 0.
    fromText: (text) => (text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)),
    fallback: bounds.fallback,
  })
}

export function choice(path: string, options: Common & { values: readonly string[]; fallback: string }): Setting {
  return setting(path, options, {
    must: `one of ${options.values.join(', ')}`,
    schema: z.enum(options.values),
    fallback: options.fallback,
  })
}

const ON = new Set<unknown>([true, 'on', 'true', 'yes'])
const OFF = new Set<unknown>([false, 'off', 'false', 'no'])

export function toggle(path: string, options: Common & { fallback?: boolean }): Setting {
  return setting(path, options, {
    must: 'on or off',
    schema: z
      .unknown()
      .refine((value) => ON.has(value) || OFF.has(value))
      .transform((value) => ON.has(value)),
    fallback: options.fallback,
  })
}

export function text(
  path: string,
  options: Common & { must: string; pattern: RegExp; fallback?: string; secret?: boolean },
): Setting {
  return setting(path, options, {
    must: options.must,
    schema: z.string().regex(options.pattern),
    fallback: options.fallback,
    secret: options.secret,
  })
}

export function filePath(
  path: string,
  options: Common & { must: string; fallback?: string; orElse?: RegExp },
): Setting {
  return setting(path, options, {
    must: options.must,
    schema: z
      .string()
      .min(1)
      .refine((value) => !value.includes('\0')),
    fallback: options.fallback,
    isPath: true,
    orElse: options.orElse,
  })
}

/** An address with one of these schemes; a trailing slash is removed. `secret`: the address can contain a password. */
export function address(
  path: string,
  options: Common & { must: string; schemes: readonly string[]; secret?: boolean },
): Setting {
  return setting(path, options, {
    must: options.must,
    schema: z
      .string()
      .refine((value) => URL.canParse(value) && options.schemes.includes(new URL(value).protocol.slice(0, -1)))
      .transform((value) => withoutEnd(value, '/')),
    secret: options.secret,
  })
}

/** A list of texts; comma-separated in the environment. */
export function list(path: string, options: Common & { must: string; item: (value: string) => boolean }): Setting {
  return setting(path, options, {
    must: options.must,
    schema: z.array(z.string().refine(options.item)),
    fromText: (value) => value.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()])),
    fallback: [],
  })
}

/** A section of the file with its own schema; YAML or JSON in the environment. */
export function section(
  path: string,
  options: Common & { must: string; schema: z.ZodType; parse: (text: string) => unknown; fallback: unknown },
): Setting {
  return setting(path, options, {
    must: options.must,
    schema: options.schema,
    fromText: options.parse,
    fallback: options.fallback,
  })
}
