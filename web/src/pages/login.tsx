// Logging in with a token. The address stays as it was, so that the page that was asked for is shown afterwards.
import { useState } from 'preact/hooks';
import { type ApiError, login } from '../api/client';
import { asError } from '../api/resource';
import { Logo } from '../ui/icons';
import { ErrorBox } from '../ui/parts';

export function Login() {
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await login(token.trim());
    } catch (err) {
      setError(asError(err));
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form class="card" onSubmit={submit}>
        <p class="brand">
          <Logo />
          Tidemill
        </p>
        <h1>Log in</h1>
        <label>
          Token
          <input
            type="password"
            name="token"
            autocomplete="off"
            spellcheck={false}
            placeholder="tdm_pat_…"
            required
            autofocus
            value={token}
            onInput={(e) => setToken(e.currentTarget.value)}
          />
        </label>
        {error && <ErrorBox error={error} />}
        <button type="submit" class="primary" disabled={busy || token.trim() === ''}>
          {busy ? 'Logging in…' : 'Log in'}
        </button>
        <p class="hint">
          A token for yourself: <code>tidemill token create dashboard</code>. It is exchanged for a session
          and not kept in this browser.
        </p>
        {location.protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(location.host) && (
          <p class="warning">This address is plain HTTP: whoever carries the traffic can read the token.</p>
        )}
      </form>
    </main>
  );
}
