/** The Python programs of the sandboxes: each bundle is one valid file, and its modules can share one namespace. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bundlePython } from '../../src/sandbox/python-bundle.ts'

const SRC = join(import.meta.dirname, '../../src/sandbox')
const PROGRAMS = ['runner/main.py', 'bubblewrap/template/main.py', 'host/probe/main.py']

/** Names that each module defines at its top level, by Python's own parser; imports do not count. */
const DEFINED = `
import ast, json, sys
def targets(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)): return [node.name]
    if isinstance(node, ast.Assign): return [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return []
print(json.dumps([name for source in json.load(sys.stdin) for node in ast.parse(source).body for name in targets(node)]))
`
const python = (code: string, input: string) =>
  execFileSync('/usr/bin/python3', ['-I', '-c', code], { input, encoding: 'utf8', maxBuffer: 2 ** 24 })

describe.each(PROGRAMS)('%s', (program) => {
  const folder = dirname(join(SRC, program))
  const modules = readdirSync(folder).filter((name) => name.endsWith('.py'))
  const bundle = bundlePython(join(SRC, program))

  test('holds every module of its folder once, and no import between them', () => {
    const found = bundle.match(/^# ---- (\w+\.py)$/gm)?.map((line) => line.slice('# ---- '.length))
    expect(found?.toSorted()).toEqual(modules.toSorted())
    expect(bundle).not.toMatch(/^\s*from \./m)
  })

  test('is valid Python', () => {
    python('import sys; compile(sys.stdin.read(), "bundle", "exec")', bundle)
  })

  test('no two modules define the same name', () => {
    const sources = modules.map((name) => readFileSync(join(folder, name), 'utf8'))
    const names = JSON.parse(python(DEFINED, JSON.stringify(sources))) as string[]
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })
})
