/** What Node, Deno and Bun add: files on disk. */
import { readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Errand } from './errand.ts'
import { inputFile } from './files.ts'
import type { InputFile, OutputFile } from './generated/types.ts'
import type { RequestOptions } from './transport.ts'

/** A file of this machine for a request's `files`; `name`, its path in the working directory, is the file's own unless given. */
export async function inputFileFrom(path: string, name = basename(path)): Promise<InputFile> {
  return inputFile(name, new Uint8Array(await readFile(path)))
}

/** Writes what an agent made to `path`. */
export async function saveFile(
  errand: Errand,
  file: OutputFile,
  path: string,
  options?: RequestOptions,
): Promise<void> {
  await writeFile(path, await errand.files.download(file, options))
}
