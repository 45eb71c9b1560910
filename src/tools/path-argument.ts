/** The `path` argument that the file tools share. Which paths are allowed is the sandbox's to say. */
import { z } from 'zod'

const MAX_PATH = 4096

export function pathArgument(description: string) {
  return z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(MAX_PATH, `must be at most ${MAX_PATH} characters`)
    .refine((path) => !path.includes('\0'), 'must not hold a NUL character')
    .describe(description)
}
