/** Dialogs, sheets and menus. Based on Radix, which manages focus and keyboard. */
import { Dialog, DropdownMenu } from 'radix-ui'
import type { ReactNode } from 'react'
import { IconButton } from './button.tsx'
import { cx } from './cx.ts'
import { Icon, type IconName } from './icon.tsx'

interface ModalProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly title: string
  readonly about?: ReactNode
  readonly wide?: boolean
  readonly children: ReactNode
  /** Buttons in the footer. */
  readonly actions?: ReactNode
}

const VEIL = 'fixed inset-0 z-40 bg-[rgb(20_19_17/0.45)] animate-appear'

export function Modal({ open, onClose, title, about, wide, children, actions }: ModalProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className={VEIL} />
        <Dialog.Content
          {...(about ? {} : { 'aria-describedby': undefined })}
          className={cx(
            'fixed left-1/2 top-[max(1rem,12vh)] z-50 grid max-h-[min(80vh,calc(100vh-2rem))] w-[calc(100vw-2rem)] -translate-x-1/2 grid-rows-[auto_1fr_auto] rounded-xl bg-card shadow-pop',
            wide ? 'max-w-3xl' : 'max-w-md',
          )}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <Dialog.Title className="text-lead font-semibold">{title}</Dialog.Title>
              {about && (
                <Dialog.Description className="mt-0.5 text-body text-soft text-pretty">{about}</Dialog.Description>
              )}
            </div>
            <Dialog.Close asChild>
              <IconButton icon="close" label="Close" size="small" />
            </Dialog.Close>
          </header>
          <div className="overflow-y-auto px-5 pb-5" tabIndex={-1}>
            {children}
          </div>
          {actions && (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{actions}</footer>
          )}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** A panel from the left or right edge, for narrow screens. */
export function Sheet({
  open,
  onClose,
  title,
  children,
  side = 'left',
}: {
  readonly open: boolean
  readonly onClose: () => void
  readonly title: string
  readonly children: ReactNode
  readonly side?: 'left' | 'right'
}) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className={VEIL} />
        <Dialog.Content
          aria-describedby={undefined}
          className={cx(
            'fixed inset-y-0 z-50 w-80 max-w-[88vw] overflow-y-auto bg-panel shadow-pop',
            side === 'left' ? 'left-0 animate-slide' : 'right-0 animate-appear',
          )}
        >
          {side === 'left' ? (
            <Dialog.Title className="sr-only">{title}</Dialog.Title>
          ) : (
            <header className="sticky top-0 z-10 flex h-12 items-center justify-between border-b bg-panel pr-2 pl-4">
              <Dialog.Title className="font-semibold">{title}</Dialog.Title>
              <Dialog.Close asChild>
                <IconButton icon="close" label="Close" size="small" />
              </Dialog.Close>
            </header>
          )}
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

interface MenuProps {
  readonly trigger: ReactNode
  readonly children: ReactNode
  readonly align?: 'start' | 'end'
  /** Open when first rendered. */
  readonly opened?: boolean
}

export function Menu({ trigger, children, align = 'end', opened }: MenuProps) {
  return (
    <DropdownMenu.Root modal={false} defaultOpen={opened}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 min-w-48 max-w-80 rounded-lg bg-card p-1 shadow-pop animate-rise"
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}

export function MenuItem({
  icon,
  children,
  onSelect,
  danger,
  checked,
  disabled,
}: {
  readonly icon?: IconName
  readonly children: ReactNode
  readonly onSelect: () => void
  readonly danger?: boolean
  readonly checked?: boolean
  readonly disabled?: boolean
}) {
  return (
    <DropdownMenu.Item
      disabled={disabled}
      onSelect={onSelect}
      className={cx(
        'flex min-h-8 cursor-pointer items-center gap-2.5 rounded-md px-2 py-1 text-body outline-none data-[highlighted]:bg-hover data-[disabled]:opacity-50',
        danger && 'text-red',
      )}
    >
      {icon && <Icon name={icon} className={danger ? '' : 'text-faint'} />}
      <span className="min-w-0 flex-1">{children}</span>
      {checked && <Icon name="check" className="text-accent" />}
    </DropdownMenu.Item>
  )
}

export function MenuLabel({ children }: { readonly children: ReactNode }) {
  return <DropdownMenu.Label className="px-2 pt-1.5 pb-1 text-micro text-faint">{children}</DropdownMenu.Label>
}

export function MenuRule() {
  return <DropdownMenu.Separator className="my-1 border-t" />
}
