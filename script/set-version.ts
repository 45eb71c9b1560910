/**
 * Sets the version of all packages and the date in the changelog: `node set-version.ts 0.2.0 2026-12-01`. Prints the changed files.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const MANIFESTS = [
  'package.json',
  'console/package.json',
  'script/node/package.json',
  'clients/typescript/package.json',
]
/** Keys of the root package and the workspaces in the lock file. */
const LOCKED = ['', 'console', 'script/node', 'site']

const [version, day] = process.argv.slice(2) as [string, string]

function edit(name: string, change: (text: string) => string): void {
  const path = join(ROOT, name)
  const text = readFileSync(path, 'utf8')
  const changed = change(text)
  if (changed === text) return
  writeFileSync(path, changed)
  process.stdout.write(`${name}\n`)
}

for (const name of MANIFESTS) edit(name, (text) => text.replace(/^( {2}"version": ").*(",)$/m, `$1${version}$2`))
edit('package-lock.json', (text) => {
  const lock = JSON.parse(text)
  lock.version = version
  for (const name of LOCKED) if (lock.packages[name]?.version) lock.packages[name].version = version
  return `${JSON.stringify(lock, null, 2)}\n`
})
// PEP 440 writes 0.2.0-rc.1 as 0.2.0rc1.
edit('clients/python/pyproject.toml', (text) =>
  text.replace(/^version = ".*"$/m, `version = "${version.replace(/-([a-z]+)\.?/, '$1')}"`),
)
edit('CHANGELOG.md', (text) => text.replace(`## ${version} (unreleased)`, `## ${version} (${day})`))
