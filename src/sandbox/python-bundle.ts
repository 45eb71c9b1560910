/**
 * Joins the modules of a Python program into one file. A sandbox starts sooner with one file than with twenty, and it can
 * be shown, copied or compiled as a whole.
 *
 * A module imports others of its folder at its beginning only, as `from .name import a, b`. All share one namespace in the
 * bundle, so no two of them may define the same name; a test checks that.
 */
import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const RELATIVE_IMPORT = /^from \.(\w+) import (?:\([^)]*\)|.*)\n/gm

/** The program that is the first process of every sandbox. */
export function runnerSource(): string {
  return bundlePython(join(import.meta.dirname, 'runner/main.py'))
}

/** The source of `main` and of all modules that it imports. Throws if they import each other in a circle. */
export function bundlePython(main: string): string {
  const done = new Map<string, string>()
  const open = new Set<string>()

  function add(name: string): void {
    if (done.has(name)) return
    if (open.has(name)) throw new Error(`${name}.py and ${[...open].at(-1)}.py import each other.`)
    open.add(name)
    const source = readFileSync(join(dirname(main), `${name}.py`), 'utf8')
    for (const [, imported] of source.matchAll(RELATIVE_IMPORT)) add(imported!)
    open.delete(name)
    done.set(name, source.replaceAll(RELATIVE_IMPORT, ''))
  }

  add(basename(main, '.py'))
  return [...done].map(([name, source]) => `# ---- ${name}.py\n${source}`).join('\n')
}
