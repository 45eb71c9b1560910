/**
 * `errand skills`: a project's skills, over HTTP; and `check`, which reads a folder and needs no server. A folder is checked
 * before it is uploaded, so that every problem is reported with its path.
 */
import { readFile, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { DEFAULT_LIMITS } from '../domain/limits.ts'
import { type Folder, readFolder } from '../skills/folder.ts'
import { type ServerOptions, withClient } from './connect.ts'
import { type CliContext, Exit, printable } from './context.ts'
import { table } from './table.ts'

/** Each path is a folder or a zip. Uploads nothing if one of them is invalid. */
export async function addSkills(context: CliContext, paths: readonly string[], options: ServerOptions): Promise<void> {
  const zips: { readonly path: string; readonly bytes: Uint8Array<ArrayBuffer> }[] = []
  for (const path of paths) zips.push({ path, bytes: await zipOf(context, path) })
  await withClient(context, options, async (client) => {
    for (const { path, bytes } of zips) {
      const skill = await client.skills.upload(bytes)
      for (const { message } of skill.warnings ?? []) {
        context.err.write(`warning: ${printable(join(path, message))}\n`)
      }
      context.out.write(`${printable(`${skill.name}@${skill.version}`)}\n`)
    }
  })
}

export async function listSkills(
  context: CliContext,
  options: ServerOptions & { readonly json: boolean },
): Promise<void> {
  const skills = await withClient(context, options, (client) => Array.fromAsync(client.skills.list({ pageSize: 100 })))
  if (options.json) return void context.out.write(`${JSON.stringify(skills, null, 2)}\n`)
  const rows = skills.map(({ name, version, source, updateTime, description }) =>
    [name, version, source, updateTime, firstWords(description)].map((cell) => printable(String(cell ?? '-'))),
  )
  context.out.write(table(['NAME', 'VERSION', 'SOURCE', 'UPDATED', 'DESCRIPTION'], rows))
}

export async function removeSkill(context: CliContext, ref: string, options: ServerOptions): Promise<void> {
  await withClient(context, options, (client) => client.skills.delete(ref))
  context.err.write(`${ref} is removed.\n`)
}

/** Checks all paths, then throws Exit if one of them is not a valid skill. */
export async function checkSkills(context: CliContext, paths: readonly string[]): Promise<void> {
  const bad: string[] = []
  for (const path of paths) if (!(await checkSkill(context, path))) bad.push(printable(path))
  if (bad.length > 0) throw new Exit(1, `${bad.join(', ')} cannot be used as a skill.`)
}

async function checkSkill(context: CliContext, path: string): Promise<boolean> {
  const { problems, skill, files } = await readSkill(context, path)
  for (const { severity, message } of problems) context.out.write(`${severity}: ${printable(message)}\n`)
  if (!skill) return false
  const count = files.length === 1 ? '1 file' : `${files.length} files`
  const { length } = skill.meta.description
  context.out.write(`${skill.name} is valid: ${count}, a description of ${length} characters.\n`)
  return true
}

async function readSkill(context: CliContext, path: string): Promise<Folder> {
  const place = resolve(context.cwd, path)
  return readFolder(place, DEFAULT_LIMITS, basename(place)).catch((error: NodeJS.ErrnoException) => {
    throw new Exit(2, `${path} can't be read (${error.code ?? error.message}).`)
  })
}

async function zipOf(context: CliContext, path: string): Promise<Uint8Array<ArrayBuffer>> {
  const place = resolve(context.cwd, path)
  const found = await stat(place).catch(() => undefined)
  if (!found) throw new Exit(2, `${path} does not exist. Give the folder of a skill, or a zip of one.`)
  if (!found.isDirectory()) return readFile(place)
  const folder = await readSkill(context, path)
  const errors = folder.problems.filter(({ severity }) => severity === 'error')
  if (!folder.skill) throw new Exit(1, errors.map(({ message }) => printable(message)).join('\n'))
  return zipFolder(folder)
}

/** Zips the folder under its own name: the server compares that with the name of the skill. */
async function zipFolder({ directory, files }: Folder): Promise<Uint8Array<ArrayBuffer>> {
  const { ZipFile } = await import('yazl')
  const zip = new ZipFile()
  for (const { path, executable } of files) {
    zip.addFile(join(directory, path), `${basename(directory)}/${path}`, { mode: executable ? 0o100_755 : 0o100_644 })
  }
  zip.end()
  const chunks: Buffer[] = []
  for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function firstWords(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}
