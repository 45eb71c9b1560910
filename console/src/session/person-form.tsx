/** The form with name, email and password: for the owner, invitations, sign-up and password reset. */
import { type FormEvent, useState } from 'react'
import { Problem } from '../server/problem.ts'
import { Button } from '../ui/button.tsx'
import { Field, Input } from '../ui/field.tsx'
import { Notice } from '../ui/states.tsx'

export interface Person {
  readonly name: string
  readonly email: string
  readonly password: string
}

interface PersonFormProps {
  readonly action: string
  readonly busy: boolean
  readonly error: unknown
  /** Shows the password field only. */
  readonly passwordOnly?: boolean
  readonly email?: string
  readonly onSubmit: (person: Person) => void
}

export function PersonForm({ action, busy, error, passwordOnly, email = '', onSubmit }: PersonFormProps) {
  const [person, setPerson] = useState<Person>({ name: '', email, password: '' })
  const problem = error ? Problem.from(error) : undefined
  const wrong = (param: string) => (problem?.param === param ? problem.message : undefined)
  const set = (changes: Partial<Person>) => setPerson({ ...person, ...changes })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit(person)
  }
  return (
    <form onSubmit={submit} className="mt-6 grid gap-4">
      {!passwordOnly && (
        <>
          <Field label="Name" error={wrong('name')}>
            {(control) => (
              <Input
                {...control}
                autoComplete="name"
                required
                autoFocus
                value={person.name}
                onChange={(event) => set({ name: event.target.value })}
                className="!h-10"
              />
            )}
          </Field>
          <Field label="Email" error={wrong('email')}>
            {(control) => (
              <Input
                {...control}
                type="email"
                autoComplete="username"
                required
                value={person.email}
                onChange={(event) => set({ email: event.target.value })}
                className="!h-10"
              />
            )}
          </Field>
        </>
      )}
      <Field label="Password" hint="At least 12 characters." error={wrong('password')}>
        {(control) => (
          <Input
            {...control}
            type="password"
            autoComplete="new-password"
            required
            minLength={12}
            maxLength={128}
            value={person.password}
            onChange={(event) => set({ password: event.target.value })}
            className="!h-10"
          />
        )}
      </Field>
      {problem && !['name', 'email', 'password'].includes(problem.param ?? '') && (
        <Notice tone="red">{problem.message}</Notice>
      )}
      <Button type="submit" look="primary" size="large" busy={busy}>
        {action}
      </Button>
    </form>
  )
}
