/** Text as content of an element or of a double-quoted attribute. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Lets names such as device_to_device_memcpy wrap after each part. */
export function breakable(html: string): string {
  return html.replaceAll('_', '_<wbr>');
}
