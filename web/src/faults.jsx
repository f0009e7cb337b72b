import { Component } from 'react';

/** Says what went wrong in what it holds, in place of an empty page. */
export class Faults extends Component {
  state = {};

  static getDerivedStateFromError(error) {
    return { error };
  }

  render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <p className="notice" role="alert">
        This page has failed: {error.message || 'no cause is known'}. <a href={location.href}>Load it again</a>, or go to{' '}
        <a href="?">all files</a>.
      </p>
    );
  }
}
