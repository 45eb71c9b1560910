/** Copy buttons, which show that the text was copied. */
import { useEffect, useState } from 'react'
import { Button, IconButton } from './button.tsx'
import { toast } from './toast.tsx'

function useCopy(text: string): { readonly copied: boolean; readonly copy: () => void } {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1_600)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = () => {
    copyText(text).then(
      () => setCopied(true),
      () => toast('The browser did not allow copying', true),
    )
  }
  return { copied, copy }
}

/** Copies a text. Browsers allow the clipboard API only on https and loopback; elsewhere execCommand is used. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const area = Object.assign(document.createElement('textarea'), { value: text })
  document.body.append(area)
  area.select()
  const done = document.execCommand('copy')
  area.remove()
  if (!done) throw new Error('not copied')
}

export function CopyIcon({
  text,
  label = 'Copy',
  className,
}: {
  readonly text: string
  readonly label?: string
  readonly className?: string
}) {
  const { copied, copy } = useCopy(text)
  return (
    <IconButton
      icon={copied ? 'check' : 'copy'}
      label={copied ? 'Copied' : label}
      size="small"
      onClick={copy}
      className={className}
    />
  )
}

export function CopyButton({
  text,
  children = 'Copy',
  look,
}: {
  readonly text: string
  readonly children?: string
  readonly look?: 'primary' | 'secondary'
}) {
  const { copied, copy } = useCopy(text)
  return (
    <Button icon={copied ? 'check' : 'copy'} onClick={copy} look={look}>
      {copied ? 'Copied' : children}
    </Button>
  )
}
