/** Input and output files on disk, for Node, Deno and Bun. */
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { Errand } from './errand.ts'
import { ErrandError } from './errors.ts'
import { inputFile } from './files.ts'
import type { InputFile, OutputFile } from './generated/types.ts'
import type { RequestOptions } from './transport.ts'

export interface SaveOptions extends RequestOptions {
  /** Whether to replace files that exist. Default false: a file that exists is an error. */
  readonly overwrite?: boolean
}

/** Reads a local file for a request's `files`. `name` is the path in the working directory; default: the file's own name. */
export async function inputFileFrom(path: string, name = basename(path)): Promise<InputFile> {
  return inputFile(name, new Uint8Array(await readFile(path)))
}

/**
 * Downloads output files into `directory`, each checked against its `sha256`, and returns their paths. Creates the directory,
 * and the subfolders that the names contain.
 *
 * The model chose the names. Before the first download, all are checked: throws ErrandError if a name leaves the directory
 * (absolute, `..`, a backslash, a drive letter, a NUL), if its path goes through a symbolic link, or if the file exists and
 * `overwrite` is not set.
 */
export async function saveFiles(
  errand: Errand,
  files: readonly OutputFile[],
  directory: string,
  { overwrite = false, ...options }: SaveOptions = {},
): Promise<string[]> {
  const root = resolve(directory)
  for (const { name } of files) await checkTarget(root, name, overwrite)
  const paths: string[] = []
  for (const file of files) {
    const path = join(root, file.name)
    const bytes = await errand.files.download(file, options)
    await mkdir(dirname(path), { recursive: true })
    if (overwrite) await rm(path, { force: true })
    // `wx` neither replaces a file nor follows a link that was created after the check.
    await writeFile(path, bytes, { flag: 'wx' })
    paths.push(path)
  }
  return paths
}

async function checkTarget(root: string, name: string, overwrite: boolean): Promise<void> {
  const refuse = (why: string) => new ErrandError(`${JSON.stringify(name)} was not saved: ${why}.`)
  const segments = name.split('/')
  const leaves = segments.some((segment) => segment === '' || segment === '.' || segment === '..')
  if (leaves || name.includes('\\') || name.includes('\0') || /^[A-Za-z]:/.test(name)) {
    throw refuse('the name is not a path below the directory')
  }
  for (let depth = 1; depth <= segments.length; depth++) {
    const path = join(root, ...segments.slice(0, depth))
    const found = await lstat(path).catch(() => undefined)
    if (!found) return
    if (found.isSymbolicLink()) throw refuse(`${path} is a symbolic link`)
    const isLast = depth === segments.length
    if (isLast && found.isDirectory()) throw refuse(`${path} is a directory`)
    if (!isLast && !found.isDirectory()) throw refuse(`${path} is not a directory`)
    if (isLast && !overwrite) throw refuse(`${path} exists. Choose another directory, or set \`overwrite\``)
  }
}
