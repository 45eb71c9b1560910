/** The door: an API key, tried before it is taken. */
import { type FormEvent, useState } from 'react'
import { getServer } from '../api/sdk.gen.js'
import { setKey } from '../server/access.ts'
import { Problem } from '../server/problem.ts'
import { Button } from '../ui/button.tsx'
import { Field, Input } from '../ui/field.tsx'
import { Notice } from '../ui/states.tsx'
import { Mark } from './mark.tsx'

const UNKNOWN = 'The server does not know this key: it may be mistyped, expired or revoked.'

export function SignIn() {
  const [text, setText] = useState('')
  const [wrong, setWrong] = useState<string>()
  const [problem, setProblem] = useState<Problem>()
  const [busy, setBusy] = useState(false)

  async function enter(event: FormEvent) {
    event.preventDefault()
    const key = text.trim()
    setProblem(undefined)
    // Nothing else can stand in a header, and no key has anything else.
    if (!/^[\x21-\x7e]+$/.test(key)) return setWrong(key === '' ? 'Enter a key.' : 'That is not an API key.')
    setWrong(undefined)
    setBusy(true)
    try {
      await getServer({ headers: { 'x-svc-api-key': key } })
      setKey(key)
    } catch (error) {
      const found = Problem.from(error)
      if (found.status === 401) setWrong(UNKNOWN)
      else setProblem(found)
    } finally {
      setBusy(false)
    }
  }

  return (
    <main className="grid min-h-dvh place-items-center p-5">
      <div className="w-full max-w-sm">
        <Mark />
        <h1 className="mt-8 text-title font-semibold tracking-tight">Open the console</h1>
        <p className="mt-1 text-soft">
          With an API key of this server. It is kept in this tab until you close it, and sent nowhere else.
        </p>
        <form onSubmit={enter} noValidate className="mt-6 grid gap-4">
          <Field label="API key" error={wrong}>
            {(control) => (
              <Input
                {...control}
                type="password"
                autoFocus
                placeholder="errand_sk_…"
                value={text}
                onChange={(event) => setText(event.target.value)}
                className="!h-10"
              />
            )}
          </Field>
          {problem && (
            <Notice tone="red" title={problem.title}>
              {problem.message}
            </Notice>
          )}
          <Button type="submit" look="primary" size="large" busy={busy}>
            Open
          </Button>
        </form>
        <p className="mt-6 border-t pt-4 text-small text-faint">
          No key at hand? On the server’s machine:{' '}
          <code className="text-soft">script/errand keys create --name me</code>
        </p>
      </div>
    </main>
  )
}
