/** Programs of the other runtimes that the TypeScript client supports, installed from npm. */
import { readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { npmPackages } from '../support/packages.ts'

const DENO = 'deno@2.9.6'
const BUN = 'bun@1.4.5'
/** Oldest supported version of Node. */
const NODE = `node-linux-${process.arch}@20.20.2`

interface Runtimes {
  /** Directory of the installation. */
  readonly place: string
  readonly deno: string
  readonly bun: string
  /** Node 20. */
  readonly node: string
}

/** Installs them if they are missing. */
export async function findRuntimes(): Promise<Runtimes> {
  const place = await npmPackages(DENO, BUN, NODE)
  const [denoOf, bunOf] = process.arch === 'arm64' ? ['arm64', 'aarch64'] : ['x64', 'x64']
  const deno = join(place, `node_modules/@deno/linux-${denoOf}-glibc/deno`)
  const bun = join(place, `node_modules/@oven/bun-linux-${bunOf}/bin/bun`)
  const node = join(place, `node_modules/node-linux-${process.arch}/bin/node`)
  return { place, deno, bun, node }
}

/** Commands, by runtime, that run a TypeScript program. Arguments can be appended. */
export async function onRuntimes(program: string): Promise<Record<string, readonly string[]>> {
  const { place, deno, bun, node } = await findRuntimes()
  // Deno fetches nothing and checks no types, because tsc does.
  const denoFlags = ['--allow-all', '--no-config', '--no-lock', '--cached-only', '--no-check']
  return {
    Deno: ['/usr/bin/env', `DENO_DIR=${place}/deno`, 'DENO_NO_UPDATE_CHECK=1', deno, 'run', ...denoFlags, program],
    Bun: ['/usr/bin/env', 'BUN_RUNTIME_TRANSPILER_CACHE_PATH=0', bun, 'run', program],
    'Node 20': [node, asJavaScript(program, place)],
  }
}

/** Writes the program without types, importing the built client, because Node 20 cannot strip types. Returns its path. */
function asJavaScript(program: string, place: string): string {
  const file = join(place, 'program.mjs')
  const built = resolve(dirname(program), '../dist')
  const code = stripTypeScriptTypes(readFileSync(program, 'utf8'))
  writeFileSync(file, code.replaceAll(/'\.\.\/src\/(\w+)\.ts'/g, `'${built}/$1.js'`))
  return file
}
