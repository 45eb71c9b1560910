/** The actions of the `browser` tool, by the names that the model uses. docs/tools.md describes each. */
import type { Action } from './actions/action.ts'
import { download, pdf, screenshot, upload } from './actions/file-actions.ts'
import { click, dialog, hover, press, scroll, select, type } from './actions/input-actions.ts'
import { back, close, forward, open, reload, snapshot, tabs, wait } from './actions/page-actions.ts'

export const ACTIONS = {
  open,
  snapshot,
  click,
  hover,
  type,
  press,
  select,
  scroll,
  back,
  forward,
  reload,
  wait,
  tabs,
  close,
  screenshot,
  pdf,
  download,
  upload,
  dialog,
} satisfies Record<string, Action>

export type ActionName = keyof typeof ACTIONS
