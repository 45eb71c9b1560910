/** Short messages at the bottom of the page, announced to screen readers. They disappear by themselves. */
import { useEffect, useState } from 'react'
import { Icon } from './icon.tsx'

interface Toast {
  readonly text: string
  readonly failed?: boolean
}

const SHOWN_MS = 4_000
let show: (toast: Toast) => void = () => {}

export function toast(text: string, failed = false): void {
  show({ text, failed })
}

export function Toasts() {
  const [current, setCurrent] = useState<Toast>()
  useEffect(() => {
    show = setCurrent
  }, [])
  useEffect(() => {
    if (!current) return
    const timer = setTimeout(() => setCurrent(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [current])
  return (
    <div role="status" className="pointer-events-none fixed inset-x-0 bottom-5 z-[60] flex justify-center px-4">
      {current && (
        <p
          key={current.text}
          className="flex items-center gap-2 rounded-lg bg-text px-3.5 py-2 text-body text-ground shadow-pop animate-rise"
        >
          <Icon name={current.failed ? 'alert' : 'check'} />
          {current.text}
        </p>
      )}
    </div>
  )
}
