async def health_check(settings):
    raise HTTPException(status_code=503, detail="ill")


async def synthesize_text(request):
    try:
        return get_engine().speak(request)
    except Exception as e:
        raise HTTPException(status_code=500 if get_engine()._initialized else 503, detail=f"Synthesis failed: {str(e)}")


async def synthesize_binary(request):
    try:
        return get_engine().speak(request)
    except Exception as e:
        raise HTTPException(status_code=500 if get_engine()._initialized else 503, detail=f"Synthesis failed: {str(e)}")
