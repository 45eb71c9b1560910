/** Buttons, and links that look like them. */
import { Link, type LinkComponentProps } from '@tanstack/react-router'
import type { ComponentProps, ReactNode } from 'react'
import { cx } from './cx.ts'
import { Icon, type IconName, Spinner } from './icon.tsx'

const LOOKS = {
  primary: 'bg-text text-ground border-text hover:opacity-90',
  secondary: 'bg-card text-text border-line-strong hover:bg-hover',
  ghost: 'bg-transparent text-soft border-transparent hover:bg-hover hover:text-text',
  danger: 'bg-red-soft text-red border-transparent hover:border-red',
} as const
const SIZES = {
  small: 'h-7 px-2.5 gap-1.5 text-small',
  medium: 'h-8 px-3 gap-2 text-body',
  large: 'h-10 px-4 gap-2 text-lead',
} as const

interface Look {
  readonly look?: keyof typeof LOOKS
  readonly size?: keyof typeof SIZES
  readonly icon?: IconName
}

function classes({ look = 'secondary', size = 'medium' }: Look, className?: string): string {
  return cx(
    'inline-flex items-center justify-center shrink-0 rounded-md border font-medium whitespace-nowrap select-none transition-colors',
    'disabled:opacity-50 aria-disabled:opacity-50 disabled:pointer-events-none',
    LOOKS[look],
    SIZES[size],
    className,
  )
}

interface ButtonProps extends ComponentProps<'button'>, Look {
  /** The action is running: the button is disabled and shows a spinner. */
  readonly busy?: boolean
}

export function Button({ look, size, icon, busy, className, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled || busy}
      aria-busy={busy || undefined}
      className={classes({ look, size }, className)}
    >
      {busy ? <Spinner /> : icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

export function ButtonLink({
  look,
  size,
  icon,
  className,
  children,
  ...rest
}: LinkComponentProps<'a'> & Look & { readonly children?: ReactNode }) {
  return (
    <Link {...(rest as LinkComponentProps)} className={classes({ look, size }, className as string)}>
      {icon && <Icon name={icon} />}
      {children as ReactNode}
    </Link>
  )
}

interface IconButtonProps extends ComponentProps<'button'> {
  readonly icon: IconName
  readonly label: string
  readonly size?: 'small' | 'medium'
}

export function IconButton({ icon, label, size = 'medium', className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={cx(
        'inline-flex items-center justify-center shrink-0 rounded-md text-soft hover:bg-hover hover:text-text transition-colors disabled:opacity-40',
        size === 'small' ? 'size-7' : 'size-8',
        className,
      )}
    >
      <Icon name={icon} />
    </button>
  )
}
