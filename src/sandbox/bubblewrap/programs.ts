/** Programs that the driver puts into the roots of its cells. */
import { spawn } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RUNNER_INSIDE } from '../inside.ts'
import { bundlePython } from '../python-bundle.ts'
import type { TemplateCommand } from './command.ts'
import { resolveInside } from './rootfs.ts'

/** Compiles the runner in the background, which saves each cell 8 of some 45 ms. Returns its path inside: the source until then. */
export function compileRunner(base: string, rootfs: string | undefined): () => string {
  let program = RUNNER_INSIDE
  if (rootfs === undefined) {
    const compiled = `${RUNNER_INSIDE}c`
    const script = 'import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)'
    const files = [join(base, RUNNER_INSIDE), join(base, compiled)]
    const child = spawn('/usr/bin/python3', ['-I', '-S', '-c', script, ...files], { stdio: 'ignore' })
    child.once('error', () => {}) // the source works too
    child.once('close', (code) => {
      if (code === 0) program = compiled
    })
  }
  return () => program
}

/**
 * A copy of the template's Python that can be executed and not opened. Its cells share /proc/self/exe: if they could open
 * that file, they could lock it for each other.
 */
export function executableOnly(scratch: string, rootfs: string | undefined, path: string): TemplateCommand['python'] {
  const copy = join(scratch, 'python')
  const file = resolveInside(rootfs ?? '/', path)
  if (!existsSync(copy)) copyFileSync(join(rootfs ?? '/', file), copy)
  chmodSync(copy, 0o711)
  return { path, file, copy }
}

/** Writes the template's program to a file that every uid can read. */
export function placeTemplate(scratch: string): string {
  const program = join(scratch, 'template.py')
  writeFileSync(program, bundlePython(join(import.meta.dirname, 'template/main.py')))
  chmodSync(program, 0o644)
  return program
}
