/** The downloads that pages started, from the browser's events. The browser names them by GUIDs that it makes. */
import { z } from 'zod'

/** Maximum number of downloads at once. More are cancelled. */
const MAX_ACTIVE = 10
const MAX_NAME = 120

export interface Download {
  readonly guid: string
  /** A file name that is valid on any file system, made from the one that the page suggested. */
  readonly name: string
  state: 'active' | 'complete' | 'failed'
  /** Why it failed; continues the sentence "… was not downloaded: it". */
  problem: string
}

export interface Downloads {
  /** Both throw ZodError if the event is malformed. */
  begin(params: unknown): void
  progress(params: unknown): void
  /** The number of downloads that are running. */
  readonly active: number
  /** The number of downloads that ever began. */
  readonly begun: number
  /** Returns the downloads that ended since the last call. */
  takeEnded(): Download[]
}

const GUID = z.string().regex(/^[0-9a-f-]{32,36}$/i)
const BEGUN = z.object({ guid: GUID, suggestedFilename: z.string() })
const PROGRESS = z.object({
  guid: GUID,
  state: z.enum(['inProgress', 'completed', 'canceled']),
  receivedBytes: z.number(),
  totalBytes: z.number(),
})

export function createDownloads(maxBytes: number, cancel: (guid: string) => void): Downloads {
  const known = new Map<string, Download>()
  let begun = 0

  const active = () => [...known.values()].filter(({ state }) => state === 'active').length

  function fail(download: Download, problem: string): void {
    download.state = 'failed'
    download.problem = problem
    cancel(download.guid)
  }

  return {
    begin(params) {
      const { guid, suggestedFilename } = BEGUN.parse(params)
      const full = active() >= MAX_ACTIVE
      if (known.size >= 3 * MAX_ACTIVE) return cancel(guid)
      begun++
      const download: Download = { guid, name: fileName(suggestedFilename), state: 'active', problem: '' }
      known.set(guid, download)
      if (full) fail(download, `exceeded the limit of ${MAX_ACTIVE} downloads at once`)
    },
    progress(params) {
      const { guid, state, receivedBytes, totalBytes } = PROGRESS.parse(params)
      const download = known.get(guid)
      if (download?.state !== 'active') return
      if (Math.max(receivedBytes, totalBytes) > maxBytes) fail(download, `is larger than ${maxBytes} bytes`)
      else if (state === 'completed') download.state = 'complete'
      else if (state === 'canceled') {
        download.state = 'failed'
        download.problem = 'was interrupted'
      }
    },
    get active() {
      return active()
    },
    get begun() {
      return begun
    },
    takeEnded() {
      const ended = [...known.values()].filter(({ state }) => state !== 'active')
      for (const { guid } of ended) known.delete(guid)
      return ended
    },
  }
}

function fileName(suggested: string): string {
  const last = suggested.split(/[\\/]/).at(-1) ?? ''
  const safe = last.replace(/[\u0000-\u001f\u007f"*:<>?|]/g, '_').replace(/^\.+/, '')
  return safe.slice(-MAX_NAME) || 'download'
}
