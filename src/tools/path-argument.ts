/** The `path` argument of the file tools. The sandbox decides which paths are allowed. */
import { z } from 'zod'

const MAX_PATH = 4096

export function pathArgument(description: string) {
  return z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(MAX_PATH, `must be at most ${MAX_PATH} characters`)
    .refine((path) => !path.includes('\0'), 'must not contain a NUL character')
    .describe(description)
}
