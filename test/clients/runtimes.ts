/** The other runtimes that the client in TypeScript is for: their programs from npm, pinned, kept in node_modules for the next run. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const HOME = resolve(import.meta.dirname, '../../node_modules/.errand-runtimes')
const DENO = 'deno@2.9.6'
const BUN = 'bun@1.4.5'

/** How a program is started on each: a command, to which its file and arguments are added. */
export async function openRuntimes(): Promise<{ deno: readonly string[]; bun: readonly string[] }> {
  const modules = join(HOME, `${DENO}-${BUN}`, 'node_modules')
  const [denoOf, bunOf] = process.arch === 'arm64' ? ['arm64', 'aarch64'] : ['x64', 'x64']
  const deno = join(modules, `@deno/linux-${denoOf}-glibc/deno`)
  const bun = join(modules, `@oven/bun-linux-${bunOf}/bin/bun`)
  if (!existsSync(deno) || !existsSync(bun)) {
    mkdirSync(join(modules, '..'), { recursive: true })
    const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
    await promisify(execFile)('npm', ['install', '--prefix', join(modules, '..'), ...flags, DENO, BUN])
  }
  return {
    // Nothing of it is fetched, and its types are tsc's to check.
    deno: [
      '/usr/bin/env',
      `DENO_DIR=${HOME}/deno`,
      'DENO_NO_UPDATE_CHECK=1',
      deno,
      'run',
      '--allow-all',
      '--no-config',
      '--no-lock',
      '--cached-only',
      '--no-check',
    ],
    bun: ['/usr/bin/env', `BUN_RUNTIME_TRANSPILER_CACHE_PATH=0`, bun, 'run'],
  }
}
