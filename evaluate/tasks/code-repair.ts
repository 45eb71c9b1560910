/** Repair of a small Python project with failing tests. Hidden tests check what the visible ones leave open. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { below, runPython } from '../python.ts'
import type { Task } from '../task.ts'

const FOLDER = join(import.meta.dirname, 'code-repair')
const PROJECT = join(FOLDER, 'project')

const INSTRUCTION = `project/ is a small Python project. Some of its tests fail (python3 -m unittest discover -t . tests, in project/).
Find the defects in its modules and repair them. Do not change the tests. Defects without a failing test count as well.
Put the whole repaired project into outputs/project/, with the same file names.`

function projectFiles(): Map<string, string> {
  const names = readdirSync(PROJECT, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = names.map(({ parentPath, name }) => join(parentPath, name)).filter((path) => !path.endsWith('.pyc'))
  return new Map(paths.map((path) => [path.slice(PROJECT.length + 1), readFileSync(path, 'utf8')]))
}

export const codeRepair: Task = {
  name: 'code-repair',
  about: 'repair of a small Python project with failing tests',
  needsServices: false,
  request: () => ({
    instruction: INSTRUCTION,
    tools: ['code_execution', 'file_read', 'file_write'],
    files: [...projectFiles()].map(([name, content]) => ({ name: `project/${name}`, content })),
  }),
  grade({ files }) {
    const repaired = below('project', files)
    if (repaired.size === 0) return 'outputs/project/ is missing'
    for (const [name, content] of projectFiles()) if (name.startsWith('tests/')) repaired.set(name, content)
    repaired.set('tests/test_hidden.py', readFileSync(join(FOLDER, 'hidden_tests.py'), 'utf8'))
    return runPython(repaired, ['-m', 'unittest', 'discover', '-t', '.', 'tests'])
  },
}
