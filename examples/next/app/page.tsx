'use client'
import { type FormEvent, useState } from 'react'

export default function Page() {
  const [answer, setAnswer] = useState('')

  async function ask(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const instruction = new FormData(event.currentTarget).get('instruction')
    const response = await fetch('/api/run', { method: 'POST', body: JSON.stringify({ instruction }) })
    setAnswer('')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const { value } = part
      setAnswer((before) => before + value)
    }
  }

  return (
    <form onSubmit={ask}>
      <input name="instruction" defaultValue="What is 17 * 23?" aria-label="Instruction" />
      <button type="submit">Ask</button>
      <pre>{answer}</pre>
    </form>
  )
}
