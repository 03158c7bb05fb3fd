/** Text as content of an element, or of an attribute in double quotes. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Names such as device_to_device_memcpy may go on in the next line after each of their parts. */
export function breakable(html: string): string {
  return html.replaceAll('_', '_<wbr>');
}
