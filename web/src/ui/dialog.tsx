import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../api/client';
import { asError } from '../api/resource';
import { ErrorBox } from './parts';

export function Dialog(p: { title: string; onClose: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const d = ref.current;
    d?.showModal();
    return () => d?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      aria-label={p.title}
      onClose={p.onClose}
      onClick={(e) => e.target === e.currentTarget && p.onClose()}
    >
      <div class="dialog-body">
        <h2>{p.title}</h2>
        {p.children}
      </div>
    </dialog>
  );
}

/** Asks before something that cannot be taken back; stays open with the reason when it was refused. */
export function Confirm(p: { title: string; verb: string; keep: string; run: () => Promise<void>; onClose: () => void; children: ComponentChildren }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await p.run();
      p.onClose();
    } catch (e) {
      setError(asError(e));
      setBusy(false);
    }
  };
  return (
    <Dialog title={p.title} onClose={p.onClose}>
      <p>{p.children}</p>
      {error && <ErrorBox error={error} />}
      <div class="dialog-actions">
        <button type="button" onClick={p.onClose}>
          {p.keep}
        </button>
        <button type="button" class="danger" disabled={busy} onClick={run}>
          {busy ? 'One moment…' : p.verb}
        </button>
      </div>
    </Dialog>
  );
}
