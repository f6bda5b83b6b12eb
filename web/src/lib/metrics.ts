/** What the step uses of its host, recorded by Tidemill; the others it has logged itself. */
export const isSystem = (m: { key: string }) => m.key.startsWith('system/');
