// Before the first paint: a theme that was chosen here goes before the system's.
try {
  const theme = localStorage.getItem('errand.theme')
  if (theme) document.documentElement.dataset.theme = theme
} catch {}
