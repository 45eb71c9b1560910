/**
 * Finds the server that runs on a data directory. The server writes its address to a file there, so that commands on the same
 * directory call it instead of starting a second engine.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../domain/ids.ts'
import { announceProcess, isProcessAlive } from '../sandbox/data-directory.ts'

export interface RunningServer {
  readonly url: string
  /** A key of the project `default` that this server accepts until it stops. The file is readable by its owner alone. */
  readonly key: string
}

interface StoredServer extends RunningServer {
  /** Names the socket that shows whether the server is alive; after a crash the file remains. */
  readonly process: string
}

const fileIn = (dataDir: string) => join(dataDir, 'server.json')

/** Makes `findServer` find this server until it is closed. With two servers on one directory, the last one is found. */
export async function announceServer(dataDir: string, server: RunningServer): Promise<{ close(): Promise<void> }> {
  const process = newId('req')
  const sign = await announceProcess(process)
  const [file, draft] = [fileIn(dataDir), `${fileIn(dataDir)}.${process}`]
  writeFileSync(draft, JSON.stringify({ ...server, process } satisfies StoredServer), { mode: 0o600 })
  renameSync(draft, file)
  return {
    close() {
      if (read(dataDir)?.process === process) rmSync(file, { force: true })
      return sign.close()
    },
  }
}

/** Returns undefined if no server runs on this directory. */
export async function findServer(dataDir: string): Promise<RunningServer | undefined> {
  const stored = read(dataDir)
  return stored && (await isProcessAlive(stored.process)) ? stored : undefined
}

function read(dataDir: string): StoredServer | undefined {
  try {
    return JSON.parse(readFileSync(fileIn(dataDir), 'utf8')) as StoredServer
  } catch {
    return undefined
  }
}
