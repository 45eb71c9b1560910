/** A scrollable region that can be focused and scrolled by keyboard. */
import type { ComponentProps } from 'react'
import { useUniqueLabel } from './label-suffix.ts'

export function Scroller({ label, ...rest }: ComponentProps<'section'> & { readonly label: string }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard can't scroll it.
  return <section aria-label={useUniqueLabel(label)} tabIndex={0} {...rest} />
}
