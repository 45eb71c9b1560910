/** The other runtimes that the client in TypeScript is for: their programs from npm, pinned, kept in node_modules for the next run. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

const HOME = resolve(import.meta.dirname, '../../node_modules/.errand-runtimes')
const DENO = 'deno@2.9.6'
const BUN = 'bun@1.4.5'
/** The oldest that it is for. */
const NODE = `node-linux-${process.arch}@20.20.2`

/** The command of that TypeScript program on each; arguments are added to it. */
export async function onRuntimes(program: string): Promise<Record<string, readonly string[]>> {
  const place = join(HOME, [DENO, BUN, NODE].join('-'))
  const [denoOf, bunOf] = process.arch === 'arm64' ? ['arm64', 'aarch64'] : ['x64', 'x64']
  const deno = join(place, `node_modules/@deno/linux-${denoOf}-glibc/deno`)
  const bun = join(place, `node_modules/@oven/bun-linux-${bunOf}/bin/bun`)
  const node = join(place, `node_modules/node-linux-${process.arch}/bin/node`)
  if (![deno, bun, node].every(existsSync)) {
    mkdirSync(place, { recursive: true })
    const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
    await promisify(execFile)('npm', ['install', '--prefix', place, ...flags, DENO, BUN, NODE])
  }
  // Nothing is fetched, and types are tsc's to check.
  const denoFlags = ['--allow-all', '--no-config', '--no-lock', '--cached-only', '--no-check']
  return {
    Deno: ['/usr/bin/env', `DENO_DIR=${place}/deno`, 'DENO_NO_UPDATE_CHECK=1', deno, 'run', ...denoFlags, program],
    Bun: ['/usr/bin/env', 'BUN_RUNTIME_TRANSPILER_CACHE_PATH=0', bun, 'run', program],
    'Node 20': [node, asJavaScript(program, place)],
  }
}

/** Node 20 strips no types: the program without them, on the client as it is built. */
function asJavaScript(program: string, place: string): string {
  const built = resolve(dirname(program), '../dist/index.js')
  const file = join(place, 'program.mjs')
  writeFileSync(file, stripTypeScriptTypes(readFileSync(program, 'utf8')).replace('../src/index.ts', built))
  return file
}
