/**
 * What a setting is: its place in `errand.yaml`, its environment variable, what it must be, and what it is where
 * nobody says. One table of these (settings.ts) drives the file, the environment and the reference.
 */

import * as z from 'zod'
import { withoutEnd } from '../domain/trim.ts'

export interface Setting {
  /** Its place in the file: `limits.runningPerProject`. */
  readonly path: string
  /** Its environment variable: `ERRAND_LIMITS_RUNNING_PER_PROJECT`. */
  readonly env: string
  /** What it must be, to stand after "must be". */
  readonly must: string
  readonly schema: z.ZodType
  /** The environment's text as the value that the file would hold. Throws where it can't be read. */
  readonly fromText: (text: string) => unknown
  readonly fallback: unknown
  readonly doc: string
  /** Never repeated in a message. */
  readonly secret: boolean
  /** A path: relative ones are resolved where they were written. */
  readonly isPath: boolean
  /** A path that may be something else by its form: then it is one only where something stands there. */
  readonly orElse: RegExp | undefined
}

interface Common {
  readonly doc: string
  /** Where the name is not the path in capitals. */
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
    // What is no number stays a text, so that the message can repeat it. Number(' ') would be 0.
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

/** An address with one of these schemes, without a trailing slash. `secret`: it may carry a password. */
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

/** A part of the file with a shape of its own; YAML or JSON in the environment. */
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
