import sys

from google import genai
from google.genai import types


def get_weather(city: str) -> str:
    """Return the weather in a city."""
    return f"It is sunny in {city}."


config = types.GenerateContentConfig(tools=[get_weather])
client = genai.Client()
chat = client.chats.create(model="gemini-3-pro", config=config)
for question in sys.argv[1:]:
    print(chat.send_message(question).text)
