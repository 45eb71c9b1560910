/**
 * Environment with which a thread or a child process uses this process's compile cache. Neither inherits it, and without
 * it stripping types and compiling are most of their start. Empty if this process has no cache.
 */
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'

export function compileCacheEnv(): { readonly NODE_COMPILE_CACHE?: string } {
  const directory = getCompileCacheDir()
  // Node appends a directory for its version.
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: dirname(directory) }
}
