/** Form fields: label, control, hint and error. */
import { type ComponentProps, type ReactNode, useId } from 'react'
import { cx } from './cx.ts'
import { Icon } from './icon.tsx'

const CONTROL =
  'w-full min-w-0 rounded-md border border-line-strong bg-card px-2.5 text-body text-text transition-colors hover:border-faint aria-invalid:border-red disabled:opacity-60'

interface FieldProps {
  readonly label: ReactNode
  readonly hint?: ReactNode
  readonly error?: string
  readonly optional?: boolean
  readonly className?: string
  /** Gets the ids that connect the control to its label and texts. */
  readonly children: (control: {
    readonly id: string
    readonly 'aria-describedby'?: string
    readonly 'aria-invalid'?: boolean
  }) => ReactNode
}

export function Field({ label, hint, error, optional, className, children }: FieldProps) {
  const id = useId()
  const about = error || hint ? `${id}-about` : undefined
  return (
    <div className={cx('grid content-start gap-1.5', className)}>
      <label htmlFor={id} className="flex items-baseline justify-between text-small font-medium text-text">
        <span>{label}</span>
        {optional && <span className="font-normal text-faint">optional</span>}
      </label>
      {children({ id, 'aria-describedby': about, 'aria-invalid': error ? true : undefined })}
      {about && (
        <p
          id={about}
          className={cx('text-small', error ? 'text-red' : 'text-faint')}
          role={error ? 'alert' : undefined}
        >
          {error ?? hint}
        </p>
      )}
    </div>
  )
}

export function Input({ className, ...rest }: ComponentProps<'input'>) {
  return <input autoComplete="off" spellCheck={false} {...rest} className={cx(CONTROL, 'h-8', className)} />
}

export function Textarea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea {...rest} className={cx(CONTROL, 'py-2 leading-5 resize-y', className)} />
}

export function Select({ className, children, ...rest }: ComponentProps<'select'>) {
  return (
    <span className={cx('relative block', className)}>
      <select {...rest} className={cx(CONTROL, 'h-8 appearance-none pr-8 truncate')}>
        {children}
      </select>
      <Icon name="updown" className="pointer-events-none absolute right-2 top-2 text-faint" />
    </span>
  )
}

/** A checkbox with a label. */
export function Check({
  label,
  hint,
  className,
  ...rest
}: ComponentProps<'input'> & { readonly label: ReactNode; readonly hint?: ReactNode }) {
  const id = useId()
  return (
    <div className={cx('flex gap-2.5 items-start', className)}>
      <input
        id={id}
        type="checkbox"
        aria-describedby={hint ? `${id}-about` : undefined}
        {...rest}
        className="mt-0.5 size-4 shrink-0 accent-accent"
      />
      <div className="min-w-0">
        <label htmlFor={id} className="text-body">
          {label}
        </label>
        {hint && (
          <p id={`${id}-about`} className="text-small text-faint">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** A switch that takes effect immediately. */
export function Switch({
  checked,
  onChange,
  label,
  disabled,
}: {
  readonly checked: boolean
  readonly onChange: (on: boolean) => void
  readonly label: string
  readonly disabled?: boolean
}) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={checked}
      aria-label={label}
      disabled={disabled}
      onClick={() => onChange(!checked)}
      className={cx(
        'relative h-5 w-9 shrink-0 rounded-full transition-colors disabled:opacity-50',
        checked ? 'bg-green' : 'bg-faint',
      )}
    >
      <span
        className={cx(
          'absolute top-0.5 size-4 rounded-full bg-card transition-[left]',
          checked ? 'left-[18px]' : 'left-0.5',
        )}
      />
    </button>
  )
}
