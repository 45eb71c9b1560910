/** Events in the browser that no action of the model caused, as sentences for the next result: tabs, dialogs. */

const MAX_NOTICES = 20

export interface Notices {
  /** Ignores a sentence that is already waiting, and everything above the maximum. */
  add(sentence: string): void
  /** Returns the sentences since the last call. */
  take(): string[]
}

export function createNotices(): Notices {
  let waiting: string[] = []
  return {
    add(sentence) {
      if (waiting.length < MAX_NOTICES && !waiting.includes(sentence)) waiting.push(sentence)
    },
    take() {
      const taken = waiting
      waiting = []
      return taken
    },
  }
}
