/** What code finds inside, whatever made the sandbox: where the pieces stand that Errand brings in, and the environment. */
import type { SandboxLimits } from './port.ts'

export const RUNNER_INSIDE = '/errand/runner.py'
export const NODE_INSIDE = '/errand/bin/node'

export const ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: '/errand/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin',
  HOME: '/workspace',
  USER: 'errand',
  PWD: '/workspace',
  HOSTNAME: 'sandbox',
  LANG: 'C.UTF-8',
  TMPDIR: '/tmp',
  TERM: 'dumb',
  MPLBACKEND: 'Agg',
  MPLCONFIGDIR: '/tmp/matplotlib',
  XDG_CACHE_HOME: '/tmp/cache',
  PYTHONDONTWRITEBYTECODE: '1',
}

/** What takes Python long to import and much code wants: there are cells that have it loaded, as far as the root has it. */
export const PRELOADED = ['numpy', 'pandas', 'matplotlib.pyplot', 'matplotlib.backends.backend_agg']

/** Processes of our own in a sandbox: the runner, a keeper for each language, and what makes the sandbox. */
export const OWN_PROCESSES = 6

/** For the places that no program needs many files in. */
const FEW_FILES = 2048
const TMP_MIB = 64
const PRIVATE_MIB = 8

/** What can be written to: a tmpfs, bounded in bytes and in number of files. */
export interface Place {
  readonly path: string
  readonly mebibytes: number
  readonly files: number
  readonly mode: string
}

export function placesOf({ workspaceMiB, files }: SandboxLimits): Place[] {
  const few = Math.min(files, FEW_FILES)
  return [
    { path: '/tmp', mebibytes: TMP_MIB, files, mode: '1777' },
    { path: '/dev/shm', mebibytes: TMP_MIB, files: few, mode: '1777' },
    { path: '/run/errand', mebibytes: PRIVATE_MIB, files: few, mode: '0700' },
    { path: '/workspace', mebibytes: workspaceMiB, files, mode: '0755' },
  ]
}
