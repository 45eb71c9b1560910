/** Errand's logo and name. */
import { Link } from '@tanstack/react-router'

export function Logo() {
  return (
    <Link to="/" className="flex items-center gap-2.5 rounded-md text-lead font-semibold tracking-tight">
      <svg aria-hidden="true" viewBox="0 0 32 32" className="size-6">
        <rect width="32" height="32" rx="8" fill="var(--ink)" />
        <path d="M9 10.5h9.5M9 16h14M9 21.5h6.5" stroke="var(--ground)" strokeWidth="2.6" strokeLinecap="round" />
        <circle cx="21.8" cy="21.5" r="2.6" fill="#ec9468" />
      </svg>
      Errand
    </Link>
  )
}
