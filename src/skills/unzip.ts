/**
 * Unpacks a skill's zip into a directory of ours. All metadata is checked before anything is unpacked: names, file types,
 * sizes, and that no two entries share bytes or a name. Each entry must then have exactly its declared size and checksum.
 * Throws ErrandError `invalid_request` or `payload_too_large`, with a sentence for the caller.
 *
 * yauzl parses the format. It does not check file types, overlaps or checksums; these are checked here.
 */
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { crc32 } from 'node:zlib'
import type { Entry, ZipFile } from 'yauzl'
import { ErrandError } from '../domain/errors.ts'
import type { SkillLimits } from './limits.ts'
import { collisions, decodeName, isIgnored, pathProblem, shown } from './paths.ts'
import { SKILL_FILE } from './skill-file.ts'

/** Bits of an entry's flags; file types and permissions, from the upper half of its attributes. */
const ENCRYPTED = 0x1 | 0x40 | 0x2000
const KIND = 0o170_000
const FOLDER = 0o040_000
const REGULAR = 0o100_000
const LINK = 0o120_000
const EXECUTABLE = 0o111
const STORED = 0
const DEFLATED = 8
const LOCAL_HEADER_BYTES = 30

export interface Unpacked {
  /** The single top folder of the zip; undefined if SKILL.md is at its root. */
  readonly folder: string | undefined
}

interface Member {
  readonly path: string
  readonly entry: Entry
  readonly executable: boolean
}

/** `directory` must exist and be empty. */
export async function unzip(zip: string, directory: string, limits: SkillLimits): Promise<Unpacked> {
  const { openPromise } = await import('yauzl')
  let file: ZipFile | undefined
  try {
    file = await openPromise(zip, { autoClose: false, decodeStrings: false, validateEntrySizes: true })
    const members = await readMembers(file, limits)
    const top = topFolder(members)
    for (const member of members) await unpack(file, member, join(directory, member.path.slice(top.length)))
    return { folder: top === '' ? undefined : top.slice(0, -1) }
  } catch (error) {
    if (error instanceof ErrandError || isDiskError(error)) throw error
    throw refused(`can't be read: ${(error as Error).message.split('\n')[0]!.replace(/\.$/, '')}`)
  } finally {
    file?.close()
  }
}

/** True for errors of the disk, which are not the zip's fault. */
function isDiskError(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code !== undefined && !code.startsWith('Z_') && code !== 'ERR_STREAM_PREMATURE_CLOSE'
}

function refused(phrase: string): ErrandError {
  const message = `The zip ${phrase}.`
  return new ErrandError('invalid_request', message, { param: 'file', details: [{ param: 'file', message }] })
}

async function readMembers(file: ZipFile, { skillBytes, skillFiles }: SkillLimits): Promise<Member[]> {
  const members: Member[] = []
  const all: Entry[] = []
  let size = 0
  for await (const entry of file.eachEntry()) {
    all.push(entry)
    // Folders may have entries too, and ignored files are not counted, hence twice the limit.
    if (all.length > 2 * skillFiles + 100) throw tooLarge(`has more than ${skillFiles} files`)
    const member = memberOf(entry)
    if (!member) continue
    members.push(member)
    size += entry.uncompressedSize
    if (members.length > skillFiles) throw tooLarge(`has more than ${skillFiles} files`)
    if (size > skillBytes) throw tooLarge(`unpacks to more than ${skillBytes} bytes`)
  }
  const [collision] = collisions(members.map(({ path }) => path))
  if (collision !== undefined) throw refused(`is ambiguous: ${collision}`)
  refuseOverlaps(all)
  return members
}

function tooLarge(phrase: string): ErrandError {
  return new ErrandError('payload_too_large', `The zip ${phrase}.`, { param: 'file' })
}

/** Undefined for folders, which the files' paths imply, and for ignored files. */
function memberOf(entry: Entry): Member | undefined {
  const raw = entry.fileName as unknown as Buffer
  const name = decodeName(raw)
  if (name === undefined) throw refused(`has a name that is not UTF-8: ${shown(raw.toString('latin1'))}`)
  const isFolder = name.endsWith('/')
  const path = isFolder ? name.slice(0, -1) : name
  const problem = pathProblem(path)
  if (problem !== undefined) throw refused(`has a name that can't be used: ${shown(name)} ${problem}`)
  const mode = entry.externalFileAttributes >>> 16
  const kind = mode & KIND
  if (kind === LINK) throw refused(`has a symbolic link, ${shown(name)}; a skill has files and folders`)
  if (kind !== 0 && kind !== (isFolder ? FOLDER : REGULAR)) {
    throw refused(`has an entry that is neither a file nor a folder: ${shown(name)}`)
  }
  if ((entry.generalPurposeBitFlag & ENCRYPTED) !== 0) throw refused(`is encrypted: ${shown(name)} can't be read`)
  if (isFolder) {
    if (entry.uncompressedSize > 0) throw refused(`has a folder with content, ${shown(name)}`)
    return undefined
  }
  if (isIgnored(path)) return undefined
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    throw refused(`has a file, ${shown(name)}, in a compression (${entry.compressionMethod}) other than deflate`)
  }
  return { path, entry, executable: (mode & EXECUTABLE) !== 0 }
}

/** Rejects entries that share bytes: they let a small zip unpack to a huge size, or make one file ambiguous. */
function refuseOverlaps(entries: readonly Entry[]): void {
  const places = entries
    .map((entry) => ({
      start: entry.relativeOffsetOfLocalHeader,
      end: entry.relativeOffsetOfLocalHeader + LOCAL_HEADER_BYTES + entry.fileNameLength + entry.compressedSize,
    }))
    .sort((a, b) => a.start - b.start)
  if (places.some(({ start }, i) => i > 0 && start < places[i - 1]!.end)) throw refused('has entries that overlap')
}

/** The top folder with its slash; empty if SKILL.md is at the root. */
function topFolder(members: readonly Member[]): string {
  const isSkillFile = (path: string) => path.toLowerCase() === SKILL_FILE.toLowerCase()
  if (members.some(({ path }) => isSkillFile(path))) return ''
  const tops = new Set(members.map(({ path }) => path.slice(0, path.indexOf('/') + 1)))
  const [top = ''] = tops
  if (tops.size === 1 && members.some(({ path }) => isSkillFile(path.slice(top.length)))) return top
  throw refused(`has no ${SKILL_FILE}, neither at its root nor in its one top folder`)
}

async function unpack(file: ZipFile, { entry, path, executable }: Member, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o755 })
  const source = await file.openReadStreamPromise(entry)
  let sum = 0
  let size = 0
  async function* counted(chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      sum = crc32(chunk, sum)
      size += chunk.length
      if (size > entry.uncompressedSize) break
      yield chunk
    }
  }
  await pipeline(source, counted, createWriteStream(target, { flags: 'wx', mode: executable ? 0o755 : 0o644 }))
  if (size !== entry.uncompressedSize || sum !== entry.crc32)
    throw refused(`is damaged: ${shown(path)} has another size or checksum than declared`)
}
