/** The console's icons, on a 16 × 16 grid. They are decorative: hidden from assistive technology. */
import { cx } from './cx.ts'

const PATHS = {
  overview: 'M2.5 2.5h4.5v5h-4.5zM9 2.5h4.5v3h-4.5zM9 8.5h4.5v5h-4.5zM2.5 10.5h4.5v3h-4.5z',
  play: 'M5 3.2v9.6l7.5-4.8z',
  list: 'M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01',
  agent: 'M3 6.5h10v6.5h-10zM8 6.5v-3M6 10h.01M10 10h.01M8 2.6a.9.9 0 1 1 0 1.8a.9.9 0 0 1 0-1.8M1.5 9v2M14.5 9v2',
  key: 'M10.5 2.5a3 3 0 1 1-2.1 5.1l-5.4 5.4h-1v-2l5.4-5.4a3 3 0 0 1 3.1-3.1zM4.5 11l1.5 1.5',
  chart: 'M2.5 13.5h11M4.5 11v-3M8 11v-7M11.5 11v-5',
  settings: 'M2.5 4.5h5M11 4.5h2.5M2.5 11.5h2.5M8.5 11.5h5M9.25 2.75v3.5M6.75 9.75v3.5',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 0 1 0-9M10.4 10.4l3.1 3.1',
  plus: 'M8 3v10M3 8h10',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  check: 'M3 8.5l3.5 3.5l6.5-8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  down: 'M4 6l4 4l4-4',
  right: 'M6 4l4 4l-4 4',
  left: 'M10 4l-4 4l4 4',
  updown: 'M5 6l3-3l3 3M5 10l3 3l3-3',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  file: 'M9 2.5h-5v11h8v-8zM9 2.5v3h3',
  image: 'M2.5 3h11v10h-11zM2.5 11l3.5-3.5l3 3l1.5-1.5l3 3M10.5 6h.01',
  attach: 'M12.5 7.5l-5 5a2.8 2.8 0 0 1-4-4l5.5-5.5a1.9 1.9 0 0 1 2.7 2.7l-5.4 5.4a.9.9 0 0 1-1.3-1.3l4.8-4.8',
  download: 'M8 2.5v7.5M4.5 7l3.5 3.5l3.5-3.5M2.5 13.5h11',
  code: 'M5.5 4.5l-3.5 3.5l3.5 3.5M10.5 4.5l3.5 3.5l-3.5 3.5',
  terminal: 'M3 4.5l3.5 3.5l-3.5 3.5M8.5 11.5h4.5',
  globe: 'M8 2a6 6 0 1 1 0 12a6 6 0 0 1 0-12M2 8h12M8 2c4 3.5 4 8.5 0 12c-4-3.5-4-8.5 0-12',
  book: 'M8 4c-1.5-1-3.5-1.2-5.5-1v9.5c2-.2 4 0 5.5 1c1.5-1 3.5-1.2 5.5-1v-9.5c-2-.2-4 0-5.5 1zM8 4v9.5',
  plug: 'M5.5 2v3M10.5 2v3M4 5h8v2.5a4 4 0 0 1-8 0zM8 11.5v2.5',
  thought:
    'M8 2.5c3.2 0 5.5 2 5.5 4.6s-2.3 4.6-5.5 4.6c-.6 0-1.200-.1-1.700-.2l-3.300 2l.7-2.700c-.8-.9-1.200-2.200-1.200-3.700c0-2.600 2.300-4.600 5.500-4.600',
  alert: 'M8 2.5l6 10.500h-12zM8 6.500v3M8 11.200h.01',
  stop: 'M4 4h8v8h-8z',
  retry: 'M13 8a5 5 0 1 1-1.600-3.700M13 2.500v3h-3',
  trash: 'M2.500 4.500h11M6 4.500v-2h4v2M4 4.500l.6 9h6.800l.6-9',
  edit: 'M10.500 3l2.500 2.500l-7.500 7.500h-2.500v-2.500z',
  sun: 'M8 5.300a2.700 2.700 0 1 1 0 5.400a2.700 2.700 0 0 1 0-5.400M8 1.500v1.200M8 13.300v1.200M1.500 8h1.200M13.300 8h1.200M3.400 3.400l.9.9M11.700 11.700l.9.9M3.400 12.600l.9-.9M11.700 4.300l.9-.9',
  moon: 'M13.300 9.700a5.700 5.700 0 1 1-7-7a4.600 4.600 0 0 0 7 7',
  monitor: 'M2 3h12v8h-12zM5.500 13.500h5M8 11v2.500',
  link: 'M6.500 9.500l3-3M7.500 4.500l1.300-1.300a2.800 2.800 0 0 1 4 4l-1.300 1.300M8.500 11.500l-1.300 1.300a2.800 2.800 0 0 1-4-4l1.300-1.300',
  external: 'M6.500 3.500h-3.500v9.500h9.500v-3.500M9 2.500h4.500v4.500M13.500 2.500l-6 6',
  columns: 'M2.500 3h11v10h-11zM8 3v10',
  clock: 'M8 2a6 6 0 1 1 0 12a6 6 0 0 1 0-12M8 4.800v3.200l2.200 1.400',
  shield: 'M8 2l5 2v4c0 3-2 5-5 6c-3-1-5-3-5-6v-4z',
  people:
    'M6 3a2.300 2.300 0 1 1 0 4.600a2.300 2.300 0 0 1 0-4.600M1.800 13c.3-2.300 2-3.700 4.200-3.700s3.900 1.400 4.200 3.700M10.800 3.300a2.300 2.300 0 0 1 0 4.100M12 9.600c1.300.5 2.100 1.700 2.300 3.400',
  history: 'M3 8a5 5 0 1 0 1.600-3.700M3 2.500v3h3M8 5.500v2.700l1.800 1',
  more: 'M3.500 8h.01M8 8h.01M12.500 8h.01',
  leave: 'M6.500 13.500h-3.500v-11h3.500M10 5l3 3l-3 3M13 8h-7',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, className }: { readonly name: IconName; readonly className?: string }) {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'list' || name === 'more' ? 1.6 : 1.35}
      strokeLinecap="round"
      strokeLinejoin="round"
      className={cx('size-4 shrink-0', className)}
    >
      <path d={PATHS[name]} />
    </svg>
  )
}

/** An animated loading indicator. */
export function Spinner({ className }: { readonly className?: string }) {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      className={cx('size-4 shrink-0 animate-spin', className)}
    >
      <path d="M8 2a6 6 0 1 1-6 6" />
    </svg>
  )
}
