/** What script/rootfs builds, for tests: each form once, kept for the next run. Needs root and Debian's archive. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const CACHE = '/var/cache/errand-tests'
export const ROOTFS = resolve(import.meta.dirname, '../../script/rootfs')

const run = promisify(execFile)

/** The small tree has what the tests of sandboxes call inside; the other one is what a user gets. Resolves with an archive. */
export async function builtTree(form: 'small' | 'whole'): Promise<string> {
  const options = form === 'small' ? ['--only', 'procps'] : []
  const hash = createHash('sha256').update(readFileSync(ROOTFS)).update(options.join()).digest('hex').slice(0, 16)
  const tree = join(CACHE, `${form}-${hash}.tar`)
  if (existsSync(tree)) return tree
  mkdirSync(CACHE, { recursive: true })
  // Another test run may want the same: it waits, and finds it.
  const build = '[ -e "$0" ] || exec "$@" "$0"'
  await run('flock', [join(CACHE, form), 'sh', '-c', build, tree, ROOTFS, ...options])
  return tree
}
