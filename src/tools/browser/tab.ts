/** A tab of the browser, and what is known of it from the browser's events. */

/** CSS pixels. */
export const VIEWPORT = { width: 1280, height: 800 } as const

/** A dialog that blocks the page until it is answered. */
export interface Dialog {
  readonly kind: 'confirm' | 'prompt'
  readonly message: string
  readonly session: string
}

export interface Tab {
  /** The name that the model uses: `t1`. */
  readonly name: string
  /** The target id, which is also the id of the main frame. */
  readonly target: string
  readonly session: string
  /** Sessions of frames that have a process of their own, by frame id. */
  readonly sessions: Map<string, string>
  loading: boolean
  dialog: Dialog | undefined
  crashed: boolean
  /** The page did not answer in time: one of its scripts may be in an endless loop. */
  unresponsive: boolean
  /** The file chooser that a click opened while file choosers are intercepted. */
  chooser: { readonly session: string; readonly node: number } | undefined
}
