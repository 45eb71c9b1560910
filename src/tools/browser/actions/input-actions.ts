/** Actions on elements of the current page: mouse, keyboard, forms, scrolling. */
import { z } from 'zod'
import { Refusal } from '../input.ts'
import { KEY_EXAMPLES } from '../keys.ts'
import { type ActionContext, type ActionResult, performInput, required, targetOf } from './action.ts'

const SCROLLED = z.object({ at: z.number(), end: z.number() })

export async function click({ chromium, args }: ActionContext): Promise<ActionResult> {
  await performInput(chromium, (input) => input.click(targetOf(chromium, args), args.key === 'double'))
  return { message: `Clicked [${args.ref}].`, show: 'change' }
}

export async function hover({ chromium, args }: ActionContext): Promise<ActionResult> {
  await performInput(chromium, (input) => input.hover(targetOf(chromium, args)))
  return { message: `The mouse is over [${args.ref}].`, show: 'change' }
}

export async function type({ chromium, args }: ActionContext): Promise<ActionResult> {
  const text = required(args.text, 'text', 'what to type; empty to clear the field', true)
  const target = targetOf(chromium, args)
  await performInput(chromium, async (input) => {
    await input.type(target, text)
    if (args.key !== undefined) await input.press(target.frame.tab, args.key)
  })
  const pressed = args.key === undefined ? '' : ` and pressed ${args.key}`
  return { message: `${text === '' ? 'Cleared' : 'Typed into'} [${args.ref}]${pressed}.`, show: 'change' }
}

export async function press({ chromium, args }: ActionContext): Promise<ActionResult> {
  const key = required(args.key, 'key', `a key such as ${KEY_EXAMPLES}`)
  await performInput(chromium, (input) => input.press(chromium.tabs.current, key))
  return { message: `Pressed ${key}.`, show: 'change' }
}

export async function select({ chromium, args }: ActionContext): Promise<ActionResult> {
  const text = required(args.text, 'text', 'the label of the option; one a line if the list allows several')
  let chosen: readonly string[] = []
  await performInput(chromium, async (input) => {
    chosen = await input.select(targetOf(chromium, args), text)
  })
  const labels = chosen.map((label) => JSON.stringify(label)).join(', ')
  return { message: `Selected ${labels} in [${args.ref}].`, show: 'change' }
}

export async function scroll({ chromium, args }: ActionContext): Promise<ActionResult> {
  const { page, tabs } = chromium
  if (args.ref !== undefined) {
    await chromium.input.boxOf(targetOf(chromium, args))
    return { message: `[${args.ref}] is in view.`, show: 'nothing' }
  }
  const direction = args.text ?? 'down'
  if (!['down', 'up', 'top', 'bottom'].includes(direction)) throw new Refusal('`text` must be down, up, top or bottom.')
  const { at, end } = await page.call(page.main(tabs.current), 'scroll', direction, SCROLLED)
  await chromium.navigation.settle(tabs.current)
  return { message: `Scrolled: at ${at} of ${end} pixels.`, show: 'change' }
}

export async function dialog({ chromium, args }: ActionContext): Promise<ActionResult> {
  const { tabs, navigation } = chromium
  const tab = tabs.current
  if (!tab.dialog) throw new Refusal('No dialog is open.')
  const accept = args.key !== 'dismiss'
  if (args.key !== undefined && !['accept', 'dismiss'].includes(args.key)) {
    throw new Refusal('`key` must be accept or dismiss.')
  }
  await tabs.answer(tab, accept, args.text)
  await navigation.settle(tab)
  return { message: `The dialog was ${accept ? 'accepted' : 'dismissed'}.`, show: 'change' }
}
